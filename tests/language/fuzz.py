"""Fuzz the query language for a while; anything but an answer or its two errors is a find.

    python tests/language/fuzz.py mutations --seconds 600   mutated questions, heaps of pieces
    python tests/language/fuzz.py atheris --seconds 600     guided by coverage; needs atheris

Finds belong into the examples of test_language_properties.py.
"""

import argparse
import json
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
SLOW = 10.0  # seconds: no question on the small model may take as long, on a busy machine at that


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", choices=["mutations", "atheris"])
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # remarks on unlikely evidence
    {"mutations": by_mutations, "atheris": by_coverage}[args.engine](args.seconds, args.seed)


def by_mutations(seconds, seed):
    from random_questions import PIECES, SEEDS, answer_or_error, mutated
    from small_world import model

    pmf, rng = model(zeros=0.3), random.Random(seed)
    texts = [*SEEDS, *golden_texts()]
    outcomes, slowest, end = Counter(), (0.0, ""), time.monotonic() + seconds
    while time.monotonic() < end:
        heap = "".join(rng.choices(PIECES, k=rng.randint(0, 40)))
        text = mutated(rng.choice([*texts, heap]), rng)
        start = time.monotonic()
        try:
            outcomes[answer_or_error(pmf, text)] += 1
        except Exception:
            sys.stdout.write(f"FOUND: {text!r}\n")
            raise
        slowest = max(slowest, (time.monotonic() - start, text))
    sys.stdout.write(f"{outcomes.total():,} texts in {seconds} s: {dict(outcomes)}\n")
    sys.stdout.write(f"slowest: {slowest[0]:.3f} s, {slowest[1]!r}\n")
    sys.exit(slowest[0] > SLOW)


def by_coverage(seconds, seed):
    import atheris

    with atheris.instrument_imports(include=["rejoint.language", "rejoint.pmf"]):
        from random_questions import PIECES, SEEDS, answer_or_error
        from small_world import model

    pmf = model(zeros=0.3)

    def one(data):
        # Bytes that are no UTF-8 become lone surrogates, which texts may hold, too.
        answer_or_error(pmf, data.decode("utf-8", "surrogateescape"))

    with tempfile.TemporaryDirectory() as folder:
        corpus, words = Path(folder, "corpus"), Path(folder, "words")
        corpus.mkdir()
        for n, text in enumerate([*SEEDS, *golden_texts()]):
            (corpus / str(n)).write_bytes(text.encode())
        pieces = [piece.encode("utf-8", "surrogatepass") for piece in PIECES if len(piece) < 20]
        lines = ["".join(f"\\x{byte:02x}" for byte in piece) for piece in pieces]
        words.write_text("".join(f'"{line}"\n' for line in lines))
        options = [f"-max_total_time={seconds}", f"-seed={seed + 1}", f"-dict={words}"]
        options += [f"-timeout={SLOW:.0f}", "-max_len=2000", f"-artifact_prefix={HERE}/"]
        atheris.Setup([sys.argv[0], *options, "-print_final_stats=1", str(corpus)], one)
        atheris.Fuzz()


def golden_texts():
    golden = json.loads((HERE / "golden.json").read_text(encoding="utf-8"))
    return [case["text"] for cases in golden.values() for case in cases]


if __name__ == "__main__":
    main()
