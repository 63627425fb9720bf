"""Estimators leave out what the rule says, and accept tables that still have these columns."""

import warnings

import numpy as np
import pytest

import rejoint as rj

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def raw():
    rng = np.random.default_rng(0)
    days = pd.date_range("2019-01-01", periods=300)
    frame = pd.DataFrame({"id": range(300), "day": days, "note": [f"note {k}" for k in range(300)]})
    frame["lists"] = [[1]] * 300
    a = rng.choice(["x", "y"], 300)
    b = np.where(rng.random(300) < 0.8, a, "z").astype(object)
    b[::9] = None
    return frame.assign(a=a, b=b, c=rng.choice(["u", "v"], 300))


def fit(estimator, *data):
    with pytest.warns(rj.Remark, match="left out: 'id' .*; 'note' .*; 'day' .*; 'lists'"):
        return estimator.fit(*data)


def test_joint_pmf(raw):
    model = fit(rj.JointPMF(rank=2, random_state=0), raw)
    assert model.pmf_.domain.names == ("a", "b", "c")
    predicted = model.predict(raw)
    assert (predicted == model.predict(raw.to_dict("records"))).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn: the array has no names
        assert (predicted == model.predict(raw.to_numpy())).all()
    assert rj.JointPMF(rank=2, kinds={"day": "month"}).set_params(random_state=0)


def test_joint_classifier(raw):
    model = fit(rj.JointClassifier(rank=2, random_state=0), raw, "a")
    assert model.pmf_.domain.names == ("b", "c", "a")
    assert model.score(raw, "a") > 0.7


def test_joint_imputer(raw):
    frame = raw.assign(day=raw["day"].where(np.arange(300) % 7 > 0))
    imputer = fit(rj.JointImputer(rank=2, random_state=0), frame)
    filled = imputer.transform(frame)
    assert filled.drop(columns="b").equals(frame.drop(columns="b"))
    assert not filled["b"].isna().any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rj.Remark)
        filled = rj.JointImputer(rank=2, random_state=0, kinds={"day": "year"}).fit_transform(frame)
    assert filled["day"].equals(frame["day"])
    assert not filled["b"].isna().any()
