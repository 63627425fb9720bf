"""The folder of the package: six formats, the numbers of the plain tables, answers with ranges."""

import filecmp
import warnings

import make_town
import numpy as np

import rejoint as rj


def read():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that differ in case
        return rj.Marginals.read(rj.datasets.town_downloads())


def test_downloads_have_the_numbers_of_the_plain_tables():
    plain = rj.Marginals.read(rj.datasets.town_tables())
    found = read()
    assert set(found.domain.names) == set(plain.domain.names)
    assert {frozenset(s) for s in found.subsets} == {frozenset(s) for s in plain.subsets}
    for names in plain.subsets:
        table = found[names]
        for axis, name in enumerate(names):
            order = [found.domain[name].levels.index(x) for x in plain.domain[name].levels]
            table = np.take(table, order, axis)
        if set(names) == {"Work", "Pass"}:
            hidden = np.zeros((5, 3), dtype=bool)
            hidden[np.ix_([2, 4], [0, 1])] = True
            assert len(found.unknown) == 4
            np.testing.assert_array_equal(table[~hidden], plain[names][~hidden])
        else:
            np.testing.assert_array_equal(table, plain[names])


def test_the_folder_is_what_the_script_makes(tmp_path):
    make_town.make(tmp_path)
    names = [path.name for path in rj.datasets.town_downloads().iterdir() if path.is_file()]
    same, other, errors = filecmp.cmpfiles(
        tmp_path, rj.datasets.town_downloads(), names, shallow=False
    )
    assert sorted(same) == sorted(names)
    assert not other
    assert not errors


def test_an_answer_with_its_range():
    answer = rj.factorize(read(), random_state=0).pmf.ask("P(Pass = Monthly | Work = Student)")
    assert answer.basis == "open"  # held back
    assert answer.bounds.low <= 175 / 1305 <= answer.bounds.high
