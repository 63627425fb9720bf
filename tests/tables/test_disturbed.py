"""The files of offices, disturbed at random: read right or refused, never wrong in silence."""

import csv
import io
import random
import re
import warnings

import pytest
from offices import SAMPLES
from test_offices import check

from rejoint.marginals import Marginals
from rejoint.marginals.sheet import read_sheets
from rejoint.marginals.vocabulary import is_total_word
from rejoint.records.files import Source

WAYS = ["word", "title", "note", "delimiter", "blank", "tail", "bom", "crlf", "quote", "flag"]
TEXTS = [s for s in SAMPLES if not s.refused and s.name.endswith((".csv", ".tsv", ".txt"))]


def disturbed(sample, seed):
    """The bytes of a file after three disturbances, and which these were."""
    chance = random.Random(f"{sample.name} {seed}")
    sheet = read_sheets(Source(sample.name, content=sample.content))[0]
    rows = [[str(cell) for cell in row] for row in sheet.rows]
    ways = chance.sample(WAYS, 3)
    if "word" in ways:  # a language that no list of words knows
        rows = [["Qwx" if c.strip() and is_total_word(c) else c for c in row] for row in rows]
    if "title" in ways:
        rows = [["Report number 7 of the bureau"], ["Printed on 3 May 2022"], [], *rows]
    if "note" in ways:
        rows += [[], ["Note: revised figures."], ["(c) 2022"]]
    if "blank" in ways:
        rows.insert(chance.randrange(len(rows)), [])
    if "tail" in ways:
        rows = [[*row, "", ""] if len(row) > 1 else row for row in rows]
    if "flag" in ways:
        wide = max(map(len, rows))
        last = [r for r in rows if len(r) == wide and re.fullmatch(r"[\d., ]+", r[-1])]
        if last:
            chance.choice(last)[-1] += " r"
    delimiter = sheet.delimiter
    if "delimiter" in ways:
        delimiter = chance.choice([";", "\t"])
    out = io.StringIO()
    writer = csv.writer(
        out,
        delimiter=delimiter,
        quoting=csv.QUOTE_ALL if "quote" in ways else csv.QUOTE_MINIMAL,
        lineterminator="\r\n" if "crlf" in ways else "\n",
    )
    writer.writerows(rows)
    return out.getvalue().encode("utf-8-sig" if "bom" in ways else "utf-8"), ways


@pytest.mark.parametrize("seed", range(4))
def test_disturbed_files(tmp_path, seed):
    read = 0
    for sample in TEXTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content, ways = disturbed(sample, seed)
            path = tmp_path / (sample.name.rpartition(".")[0] + ".csv")
            path.write_bytes(content)
            try:
                found = Marginals.read(path)
            except ValueError:
                continue
            try:
                check(found, sample)
            except AssertionError as error:
                raise AssertionError(f"{sample.name}, {ways}: {error}") from error
        read += 1
    assert read >= 0.9 * len(TEXTS)
