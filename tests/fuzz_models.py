"""Fuzz the loader of saved models: anything but a model or a ValueError in words is a find.

    python tests/fuzz_models.py --seconds 600

Mutations of valid files: bytes flipped, runs cut out, doubled or filled, pieces of two files put
together, numbers of the archive's directory set to extremes, JSON values swapped. Memory is held
to two gigabytes, so that a file which asks for more is a find too.
"""

import argparse
import copy
import io
import json
import random
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

import rejoint as rj
from rejoint.pmf.label_ensemble import LabelEnsemble, LowRankMember

SLOW = 10.0  # seconds that no small file may take, even on a busy machine
MEMORY = 2 * 2**30
STRANGE = [
    *(None, True, -1, 0, 10**30, 1e308, "", "x", [], {}, [[]], [None], {"bin": [0, 1]}),
    *({"float": "inf"}, {"float": "x" * 50}, {"bin": [[], {}, 3]}, "\x00", "\ud800", 2**63),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    outcomes, tried = fuzz(args.seconds, random.Random(args.seed))
    counts = ", ".join(f"{n} {what}" for what, n in outcomes.most_common())
    sys.stdout.write(f"{tried} files: {counts}\n")


def fuzz(seconds, rng):
    """Load mutated files for a while; counts of what came of them."""
    seeds, outcomes, tried = seed_files(), Counter(), 0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.rejoint")
        while time.monotonic() < end:
            data = mutated(rng, seeds)
            path.write_bytes(data)
            tried += 1
            began = time.monotonic()
            try:
                outcome = outcome_of(path)
            except BaseException:
                found = Path("found_model.bin")
                found.write_bytes(data)
                sys.stderr.write(f"A find after {tried} files, kept in {found}.\n")
                raise
            assert time.monotonic() - began < SLOW, f"{outcome} took too long"
            outcomes[outcome] += 1
    return outcomes, tried


def outcome_of(path):
    try:
        model = rj.load(path)
    except ValueError as error:
        if len(str(error)) > 2000:
            raise RuntimeError("an error shall not repeat the file") from error
        return "corrupt" if "corrupt" in str(error) else "refused"
    pmf = model
    if isinstance(model, rj.TargetModel):
        pmf = model.pmf
        for shares in model.shares(np.full((1, len(model.features)), -1, dtype=np.int16)):
            assert abs(shares.sum() - 1.0) < 1e-5
    for each in (pmf, *pmf.draws):
        assert abs(each.marginal([each.domain.names[0]]).sum() - 1.0) < 1e-6
    return "loaded"


def seed_files():
    age = rj.Variable("age", (rj.Bin(0, 18), rj.Bin(18, float("inf"))), "binned", (9.0, 40.0))
    domain = rj.Domain((rj.Variable("text", ("ja", "π")), rj.Variable("n", (1, 2, 3)), age))
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(levels), size=2).T for levels in domain.shape]
    pmf = rj.LowRankPMF([0.25, 0.75], factors, domain)
    drawn = rj.LowRankPMF(pmf.weights, factors, domain, [pmf, pmf.sorted(), pmf])
    members = [LowRankMember(pmf, 1), LowRankMember(pmf.sorted(), 1)]
    ensemble = LabelEnsemble(members, np.full((3, 2), 0.5), np.array([1]))
    cells = {("text", "n"): [[3.0, np.nan, 4.0], [np.nan, 7.0, 1.0]], ("n", "age"): [[0.5, 0]] * 3}
    tables = rj.Marginals.from_tables(
        cells, domain=domain, suppressed=(1, np.inf), kind="counts", moments={("n", "age"): 0.1}
    )
    sums = ((np.array([0, 1]), 5.0),)
    tables = replace(tables, unknown=replace(tables.unknown, sums=sums))
    told = pmf.with_tables(tables, "Unique.").condition({"age": rj.Bin(0, 18)})
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for model in (told, drawn, pmf, rj.TargetModel(pmf, ensemble, ["age"])):
            for name in ("a.rejoint", "a.json"):
                model.save(Path(folder, name), notes={"class_names": ["x", "y"]})
                found.append(Path(folder, name).read_bytes())
    return found


def mutated(rng, seeds):
    """A valid file after one to four mutations."""
    data = bytearray(rng.choice(seeds))
    if rng.random() < 0.3:
        return restructured(rng, seeds)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data) + 1)
        run = min(rng.choice([1, 2, 4, 8, 64, 1000]), len(data) - place)
        match rng.randrange(6):
            case 0 if place < len(data):
                data[place] ^= 1 << rng.randrange(8)
            case 1:
                del data[place : place + run]
            case 2:
                data[place:place] = data[place : place + run]
            case 3:
                data[place : place + run] = rng.choice([b"\x00", b"\xff", b"9", b"["]) * run
            case 4:
                other = rng.choice(seeds)
                data[place : place + run] = other[place : place + run]
            case _:
                number = rng.choice([0, 1, 2**31 - 1, 2**32 - 1, len(data)])
                data[place : place + 4] = number.to_bytes(4, "little")
    return bytes(data)


def restructured(rng, seeds):
    """A whole archive or JSON text whose content is strange."""
    which = rng.choice([0, 4])  # a model with draws, a classifier
    plain = json.loads(seeds[which + 1])
    for _ in range(rng.randint(1, 3)):
        swap(rng, plain)
    text = json.dumps(plain)
    if rng.random() < 0.5:
        return text.encode()
    archive = io.BytesIO()
    packing = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with (
        zipfile.ZipFile(io.BytesIO(seeds[which])) as old,
        zipfile.ZipFile(archive, "w", packing) as new,
    ):
        for name in old.namelist():
            data = bytearray(old.read(name))
            if name == "meta.json":
                data = text.encode()
            elif rng.random() < 0.5:
                data[rng.randrange(len(data))] = rng.randrange(256)
            if rng.random() < 0.95:
                new.writestr(rng.choice([name] * 20 + ["../" + name]), bytes(data))
    return archive.getvalue()


def swap(rng, plain):
    """Replace a value somewhere inside by a strange one."""
    while True:
        keys = list(plain) if isinstance(plain, dict) else list(range(len(plain)))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(plain[key], dict | list) or rng.random() < 0.2:
            plain[key] = copy.deepcopy(rng.choice(STRANGE))
            return
        plain = plain[key]


if __name__ == "__main__":
    main()
