"""Every estimator of the package keeps scikit-learn's conventions."""

import numpy as np
import pandas as pd
import pytest
from faults import Payload
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ncdlib
from ncdlib import NCDKMeans, NCDSpectralClustering, SpectralClustering, make_ncd_blobs
from ncdlib.methods.base import NCDEstimator
from ncdlib.methods.saving import load

QUICK = {"epochs": 5, "latent_dim": 5, "verbose": False}
ESTIMATORS = [
    NCDKMeans(n_clusters=2, n_init=3, random_state=0),
    SpectralClustering(n_clusters=2, random_state=0),
    NCDSpectralClustering(n_clusters=2, n_iter=2, random_state=0),
    ncdlib.MetricNCD(n_clusters=2, random_state=0),
    ncdlib.Baseline(n_clusters=2, random_state=0, **QUICK),
    ncdlib.PBN(n_clusters=2, random_state=0, **QUICK),
    ncdlib.TabularNCD(n_clusters=2, random_state=0, **QUICK),
]
NEED_LABELS = [e for e in ESTIMATORS if not isinstance(e, SpectralClustering)]


def name_of(estimator):
    return type(estimator).__name__


def with_each(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=name_of)


def hide_some(y):
    """Half of the labels, at random; two classes at least among the others."""
    if y is None:
        return None
    y = np.array(y).astype(object)
    hidden = np.random.RandomState(0).permutation(len(y)) % 2 == 0
    if len(set(y[~hidden])) < 2:
        y[~hidden] = np.arange(np.sum(~hidden)) % 2
    y[hidden] = None
    return y


def hiding(estimator):
    """The estimator as a class whose fit hides labels first: scikit-learn's checks hand out labels of all rows."""
    cls = type(estimator)

    class Hiding(cls):
        def fit(self, X, y=None):
            return super().fit(X, hide_some(y))

    Hiding.__name__ = Hiding.__qualname__ = f"Hiding{cls.__name__}"
    globals()[Hiding.__name__] = Hiding  # where pickle looks for it
    return Hiding(**estimator.get_params())


CAN_NOT_HOLD: dict[str, dict[str, str]] = {
    name_of(e): {"check_clustering": "fits without any label, where known classes are to be learned from"}
    for e in NEED_LABELS
}


def can_not_hold(estimator):
    return CAN_NOT_HOLD.get(name_of(estimator).removeprefix("Hiding"), {})


@parametrize_with_checks([hiding(e) for e in ESTIMATORS], expected_failed_checks=can_not_hold, xfail_strict=True)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_no_estimator_is_forgotten():
    public = {
        name
        for name in ncdlib.__all__
        if isinstance(cls := getattr(ncdlib, name), type) and issubclass(cls, NCDEstimator)
    }
    assert public == {name_of(e) for e in ESTIMATORS}


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(n_features=6, n_samples=300, random_state=0)


@pytest.fixture(scope="module")
def frame(problem):
    return pd.DataFrame(problem.X, columns=[f"feature {i}" for i in range(problem.X.shape[1])])


@with_each(ESTIMATORS)
def test_labels(estimator, problem):
    """What check_clustering asks for, where some rows are labelled."""
    unlabeled = problem.y == -1
    model = clone(estimator).set_params(n_clusters=3).fit(problem.X, problem.y)
    assert model.labels_.shape == problem.y.shape
    assert model.labels_.dtype.kind == "i"
    assert (model.labels_[~unlabeled] == -1).all()
    assert model.labels_[unlabeled].min() >= 0
    assert model.labels_[unlabeled].max() < model.n_clusters_ == 3
    again = clone(model)
    assert np.array_equal(again.fit_predict(problem.X.tolist(), problem.y.tolist()), model.labels_)
    predicted = model.predict(problem.X_test_novel)
    assert predicted.shape == problem.y_test_novel.shape
    assert set(predicted) <= {0, 1, 2}
    assert np.mean(model.predict(problem.X)[unlabeled] == model.labels_[unlabeled]) > 0.99


@with_each(ESTIMATORS)
def test_labels_of_any_type(estimator, problem):
    names = np.where(problem.y == -1, None, np.char.add("class ", problem.y.astype(str)))
    by_name = clone(estimator).fit(problem.X, names)
    by_number = clone(estimator).fit(problem.X, problem.y)
    as_series = clone(estimator).fit(problem.X, pd.Series(problem.y, dtype="Int64"))
    with_nan = clone(estimator).fit(problem.X, np.where(problem.y == -1, np.nan, problem.y))
    for other in (by_name, as_series, with_nan):
        assert np.array_equal(other.labels_, by_number.labels_)


@with_each(ESTIMATORS)
def test_pandas_and_set_output(estimator, problem, frame):
    model = clone(estimator).fit(frame, pd.Series(problem.y))
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    assert np.array_equal(model.labels_, clone(estimator).fit(problem.X, problem.y).labels_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"feature 0": "other"}))
    if hasattr(model, "transform"):
        output = model.set_output(transform="pandas").transform(frame)
        assert isinstance(output, pd.DataFrame)
        assert output.columns.tolist() == model.get_feature_names_out().tolist()
        assert output.index.equals(frame.index)


@with_each(ESTIMATORS)
def test_pipeline(estimator, problem):
    pipeline = make_pipeline(StandardScaler(), clone(estimator).set_params(n_clusters=3))
    labels = pipeline.fit(problem.X, problem.y).predict(problem.X_test_novel)
    scaler = StandardScaler().fit(problem.X)
    alone = clone(estimator).set_params(n_clusters=3).fit(scaler.transform(problem.X), problem.y)
    assert np.array_equal(labels, alone.predict(scaler.transform(problem.X_test_novel)))


@with_each([*ESTIMATORS, *(ncdlib.PBN(2, clusterer=c, **QUICK) for c in ("spectral", "ncd_kmeans"))])
def test_save_and_load(estimator, problem, frame, tmp_path):
    model = clone(estimator).fit(frame, problem.y)
    path = model.save(tmp_path / "model.npz")
    loaded = load(path)
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert set(vars(loaded)) == set(vars(model))
    assert np.array_equal(loaded.labels_, model.labels_)
    new = pd.DataFrame(problem.X_test, columns=frame.columns)
    assert np.array_equal(loaded.predict(new), model.predict(new))
    if hasattr(model, "transform"):
        assert np.array_equal(loaded.transform(new), model.transform(new))
    with np.load(path, allow_pickle=False) as file:  # no array needs pickle
        assert all(file[name].dtype.kind != "O" for name in file.files)


def test_only_a_saved_model_is_loaded(tmp_path):
    wrong = tmp_path / "wrong.npz"
    np.savez(wrong, labels_=np.zeros(3))
    with pytest.raises(ValueError, match="is not a model or result saved by ncdlib"):
        load(wrong)
    wrong.write_text("no archive at all")
    with pytest.raises(ValueError, match=r"is not a model or result saved by ncdlib \(no npz file\)"):
        load(wrong)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.npz")


def test_no_pickle_is_loaded(problem, tmp_path):
    path = NCDKMeans(2, random_state=0).fit(problem.X, problem.y).save(tmp_path / "model.npz")
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {"labels_": np.array([Payload(tmp_path / "it ran")], dtype=object)})
    with pytest.raises(ValueError, match="is not a model or result saved by ncdlib"):
        load(path)
    assert not (tmp_path / "it ran").exists()


def test_what_load_would_not_know_is_not_saved(problem, tmp_path):
    class Mine(NCDKMeans):
        pass

    with pytest.raises(TypeError, match="cannot save Mine: ncdlib.load knows ncdlib's own estimators only"):
        Mine(2, random_state=0).fit(problem.X, problem.y).save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


@with_each(ESTIMATORS)
def test_unfitted(estimator, problem, tmp_path):
    with pytest.raises(NotFittedError):
        clone(estimator).predict(problem.X)
    with pytest.raises(NotFittedError):
        clone(estimator).save(tmp_path / "model.npz")


def with_cell(X, value):
    X = X.astype(object)
    X[3, 1] = value
    return X


BAD_ROWS = {
    "not a number": (lambda X: with_cell(X, np.nan).astype(float), "NaN"),
    "infinity": (lambda X: with_cell(X, np.inf).astype(float), "column 1 of X contains infinity: replace it"),
    "minus infinity": (lambda X: with_cell(X, -np.inf).astype(float), "column 1 of X contains infinity: replace it"),
    "a word": (lambda X: with_cell(X, "red"), "convert string to float|could not convert"),
    "one dimension": (lambda X: X[:, 0], "2D array"),
    "no column": (lambda X: X[:, :0], "0 feature"),
    "fewer rows than labels": (lambda X: X[:-1], "inconsistent numbers of samples"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
@with_each(ESTIMATORS)
def test_bad_rows(estimator, case, problem):
    change, message = BAD_ROWS[case]
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(change(problem.X), problem.y)


BAD_LABELS = {
    "none given": (lambda y: None, "requires y to be passed"),
    "no unlabelled row": (lambda y: np.where(y == -1, 99, y), "no unlabelled row: mark .* with -1"),
    "no labelled row": (lambda y: np.full_like(y, -1), "no labelled row: .* label some rows"),
    "one known class": (lambda y: np.where(y == -1, -1, 7), "single known class .* at least two"),
    "infinity": (lambda y: np.where(y == -1, -1, np.inf), "infinity"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
@with_each(NEED_LABELS)
def test_bad_labels(estimator, case, problem):
    change, message = BAD_LABELS[case]
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(problem.X, change(problem.y))


@with_each(NEED_LABELS)
def test_labels_that_are_left_out(estimator, problem):
    with pytest.raises(ValueError, match="requires y to be passed"):
        clone(estimator).fit(problem.X)


@with_each(ESTIMATORS)
def test_more_clusters_than_unlabelled_rows(estimator, problem):
    with pytest.raises(ValueError, match="n_clusters=1000 is more than the .* unlabelled rows"):
        clone(estimator).set_params(n_clusters=1000).fit(problem.X, problem.y)


@with_each(ESTIMATORS)
def test_other_number_of_columns(estimator, problem):
    model = clone(estimator).fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="expecting 6 features"):
        model.predict(problem.X_test[:, :4])


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("table", ["constant columns", "duplicate rows", "one feature", "a class with one row"])
@with_each(ESTIMATORS)
def test_what_real_tables_have(estimator, table, problem):
    X, y = problem.X.copy(), problem.y.copy()
    if table == "constant columns":
        X[:, 2:] = 5
    elif table == "duplicate rows":
        X, y = np.repeat(X[:30], 6, axis=0), np.repeat(y[:30], 6)
    elif table == "one feature":
        X = X[:, :1]
    else:
        lonely = np.flatnonzero(y == problem.known_classes[0])[1:]
        X, y = np.delete(X, lonely, axis=0), np.delete(y, lonely)
    model = clone(estimator)
    if "latent_dim" in model.get_params():
        model.set_params(latent_dim=None)
    model.fit(X, y)
    assert set(model.predict(X)) <= {0, 1}
    assert set(model.labels_[y == -1]) <= {0, 1}
