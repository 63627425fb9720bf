"""``rejoint impute``: the numbers of its Python twins, from every kind of model."""

import numpy as np
import pandas as pd
import pytest

import rejoint as rj


@pytest.fixture
def people(world):
    rng = np.random.default_rng(0)
    size = rng.normal(170, 10, size=120).round(1)
    frame = pd.DataFrame(
        {
            "size": size,
            "weight": (size - 100 + rng.normal(0, 5, size=120)).round(1),
            "team": np.where(size > 170, "tall", "small"),
            "note": [f"n{k % 3}" for k in range(120)],
        }
    )
    holes = frame.mask(rng.random(frame.shape) < [0.2, 0.2, 0.2, 0.0])
    holes.to_csv(world / "people.csv", index=False)
    return pd.read_csv(world / "people.csv")


def read(world, name="filled.csv"):
    return pd.read_csv(world / name)


def same(found, expected):
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


@pytest.mark.parametrize("method", ["expect", "mode", "draw"])
def test_data_alone_are_filled_as_by_fit_transform(run, world, people, method):
    done = run("impute", "people.csv", "-o", "filled.csv", "--method", method, "--bins", "8")
    assert done.exit_code == 0
    imputer = rj.JointImputer(method=method, bins=8, random_state=0)
    same(read(world), imputer.fit_transform(people))
    count = int(people.isna().sum().sum())
    assert f"{count} cells filled in" in done.stderr


def test_a_saved_imputer_fills_new_data(run, world, people):
    assert (
        run("impute", "people.csv", "-o", "a.csv", "--bins", 8, "--save", "i.rejoint").exit_code
        == 0
    )
    people[:40].to_csv(world / "new.csv", index=False)
    assert run("impute", "i.rejoint", "new.csv", "-o", "filled.csv").exit_code == 0
    imputer = rj.JointImputer(bins=8, random_state=0).fit(people)
    same(read(world), imputer.transform(people[:40]))
    loaded = rj.load(world / "i.rejoint")
    same(read(world), loaded.transform(people[:40]))
    # Other commands see the joint.
    assert run("ask", "i.rejoint", "P(team)").exit_code == 0


def test_a_joint_fills_by_its_own_answers_and_says_so(run, world, people):
    assert run("fit", "people.csv", "-o", "joint.rejoint", "--rank", 2, "--bins", 8).exit_code == 0
    done = run("impute", "joint.rejoint", "people.csv", "-o", "filled.csv")
    assert "The joint model fills the cells itself" in done.stderr
    same(read(world), rj.JointImputer.from_pmf(rj.load(world / "joint.rejoint")).impute(people))


def test_draws_and_probabilities(run, world, people):
    more = ("--bins", 8, "--seed", 3)
    assert run("impute", "people.csv", "-o", "two.csv", "--draws", 2, *more).exit_code == 0
    imputer = rj.JointImputer(method="draw", bins=8, random_state=3).fit(people)
    stacked = read(world, "two.csv")
    for k, table in enumerate(imputer.impute(people, n_draws=2)):
        mine = stacked[stacked["draw"] == k + 1].drop(columns="draw").reset_index(drop=True)
        same(mine, table)
    run("impute", "people.csv", "-o", "filled.csv", "--probabilities", "sure.csv", *more)
    _, sure = imputer.set_params(method="expect").impute(people, confidence=True)
    np.testing.assert_allclose(
        read(world, "sure.csv"), sure[["size", "weight", "team", "note"]], atol=1e-6
    )


def test_words(run, world, people):
    run("impute", "people.csv", "-o", "filled.csv", "--bins", 8, "--save", "i.rejoint")
    for words in (["--bins", "8"], ["--save", "j.rejoint"], ["--rank", "3"]):
        done = run("impute", "i.rejoint", "people.csv", *words)
        assert done.exit_code == 2
        assert "can only be used with DATA alone" in done.stderr
    assert "got 3 files" in run("impute", "a", "b", "c").stderr
    assert "no column 'height'" in run("impute", "people.csv", "--without", "height").stderr


def test_data_of_other_columns_are_refused(run, world):
    (world / "other.csv").write_text("Asia;Tub\nyes;\n")
    done = run("impute", "patients.rejoint", "other.csv", "-o", "none_filled.csv")
    assert done.exit_code == 1
    assert "No column of the data ('Asia', 'Tub') is one of the model ('asia'," in done.output
    assert not (world / "none_filled.csv").exists()


@pytest.mark.parametrize("name", ["joint.rejoint", "joint.json"])
def test_a_model_without_data_says_that_data_are_missing(run, world, name):
    rj.datasets.asia().save(world / name)
    done = run("impute", name)
    assert done.exit_code == 2
    assert "this is a model file, not data. DATA is missing" in done.stderr


def test_commands_say_that_the_joint_of_an_imputer_is_used(run, world, people):
    rj.JointImputer(bins=8, random_state=0).fit(people).save(world / "i.rejoint")
    for command in (["inspect", "i.rejoint"], ["ask", "i.rejoint", "P(team)"]):
        done = run(*command)
        assert done.exit_code == 0
        assert "i.rejoint has an imputer" in done.stderr
