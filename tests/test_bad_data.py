"""Bad data: whatever it is given, an estimator works, or raises a ValueError or TypeError that names what is wrong.

Never a traceback from inside torch or SciPy, a cluster out of range, a NaN, or a warning of NumPy that leaks.
``NCDLIB_LONG=1`` tries fifty times as many tables.
"""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from own_tables import attempt
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from test_estimator_checks import ESTIMATORS, NEED_LABELS, with_each

from ncdlib import (
    PBN,
    Baseline,
    HiddenClassKFold,
    HiddenClassSearchCV,
    NCDKMeans,
    NCDSpectralClustering,
    SpectralClustering,
    TabularNCD,
    discover,
    estimate_n_clusters,
    make_ncd_blobs,
    spectral_embedding,
)
from ncdlib._io.checks import check_rows, encode_labels
from ncdlib.clustering.validity import INDICES
from ncdlib.methods.deep import DeepNCD


def assert_clusters(found, n_clusters):
    assert found.dtype.kind == "i" and found.ndim == 1
    assert ((found >= 0) & (found < n_clusters)).all()


# -- tables and labels as they should not be, among some as they should --------------------------------------------

POWERS = [0] * 12 + [-300, -160, -100, -40, -20, -12, -8, -4, 4, 8, 12, 20, 40, 100, 160, 300]
UNUSUAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 5e-324, 1e-300, -1e-160, 1e-30, 1e30, 3.5e38, -1e160, 1.7e308]


@st.composite
def tables(draw, n_rows, n_columns):
    values = draw(st.sampled_from(["random"] * 4 + ["few", "constant", "duplicates", "gaps", "unusual"]))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    X = rng.normal(size=(n_rows, n_columns))
    if values == "unusual":
        cells = st.one_of(st.sampled_from(UNUSUAL), st.floats(-10, 10))
        X = draw(arrays(np.float64, X.shape, elements=cells))
    elif values == "few":
        X = X.round()
    elif values == "constant":
        X[:, draw(st.integers(0, n_columns)) :] = 7
    elif values == "duplicates":
        X = X[rng.integers(min(n_rows, 3), size=n_rows)] if n_rows else X
    elif values == "gaps":
        X[rng.random(X.shape) < 0.2] = np.nan
    with np.errstate(over="ignore"):
        X = X * 10.0 ** draw(st.sampled_from(POWERS)) + draw(st.sampled_from([0, 0, 0, 1, 1e6]))
        X[:, :1] *= 10.0 ** draw(st.sampled_from(POWERS))
        X = X.astype(draw(st.sampled_from([np.float64, np.float64, np.float32, np.float16])))
    layout = draw(st.sampled_from(["C"] * 4 + ["Fortran", "every other", "backwards", "read-only", "frame", "sparse"]))
    if layout == "Fortran":
        X = np.asfortranarray(X)
    elif layout == "every other":
        X = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    elif layout == "backwards":
        X = X[::-1, ::-1]
    elif layout == "read-only":
        X.flags.writeable = False
    elif layout == "frame":
        X = pd.DataFrame(X, columns=[f"column {i}" for i in range(n_columns)])
    elif layout == "sparse":
        X = sparse.csr_array(X.astype(np.float64))
    return X


CLASSES = [
    [0, 1, 2],
    [7, -5, 2**40],
    ["a", "b", "c"],
    [0.5, -2.0, 1e300],
    ["é", "<script>", "a b"],
    [b"a", b"\xff"],
    [True, False],
    [2**70, 1, 2],
    [pd.Timestamp("2020"), pd.Timestamp("2021")],
    ["only one"],
    [np.inf, 0, 1],
    [1, "a", 2.5],
    [1, pd.Timestamp("2020")],
    [(1, 2), (3, 4)],
    [[1], [2, 3]],
]
MISSING = [[-1], [-1], [None], [np.nan], ["-1"], [pd.NA, -1.0], [None, np.nan, -1]]


@st.composite
def labels(draw, n_rows):
    classes = draw(st.sampled_from(CLASSES[:3] * 6 + CLASSES))
    pool = classes * 2 + draw(st.sampled_from(MISSING)) * len(classes)
    positions = st.lists(st.integers(0, len(pool) - 1), min_size=n_rows, max_size=n_rows)
    y = pd.Series([pool[i] for i in draw(positions)], dtype=object)
    form = draw(st.sampled_from(["list", "objects", "series", "array"]))
    if form == "array" and not any(isinstance(value, list | tuple | bytes) for value in y):
        return np.array(y.tolist())  # NumPy makes one type of them, and text of anything beside text
    return {"list": y.tolist(), "series": y}.get(form, y.to_numpy())


def is_missing(label):
    text = label.decode("latin-1") if isinstance(label, bytes) else str(label)
    return label is np.ma.masked or text in ("-1", "-1.0", "", "nan", "None", "<NA>", "NaT")


def excuses_for_rows(X, precision=np.float64, fitting=True):
    """What a message may say of these rows, as regular expressions."""
    if sparse.issparse(X):
        yield "dense data is required"
        return
    X = np.asarray(X)
    precision = min(X.astype(np.float64).dtype if X.dtype == np.float16 else X.dtype, np.dtype(precision))
    if len(X) < 3:
        yield "minimum of [123] is required"
    if X.shape[1] == 0:
        yield "0 feature"
    if not np.isfinite(X).all():
        yield "NaN|infinity"
    elif X.size:
        X = X.astype(np.float64)
        if np.abs(X).max() > (1e15 if precision == np.float32 else 1e120):
            yield "too large to be squared"
        with np.errstate(over="ignore"):
            spread = np.ptp(X, axis=0).max()
        if fitting and 0 < spread < (1e-14 if precision == np.float32 else 1e-120):
            yield "too little to be squared"
        if fitting and precision == np.float32 and spread > 0:
            differ = np.ptp(X, axis=0)
            if np.any(np.where(differ > 0, differ, spread) < 2e-6 * np.abs(X).max(axis=0)):
                yield "too little for float32: subtract its mean, or standardise X"


def excuses_for_labels(y):
    values = [value for value in y if isinstance(value, list | tuple) or not is_missing(value)]
    if any(isinstance(value, list | tuple) for value in values):
        yield "1d array|no single value"
    if any(isinstance(value, float) and np.isinf(value) for value in values):
        yield "infinity"
    if len({isinstance(v, str) + 2 * isinstance(v, bytes) + 4 * isinstance(v, pd.Timestamp) for v in values}) > 1:
        yield "several types|cannot be sorted"


SHAPES = st.tuples(st.sampled_from([0, 1, 2, 2, 3, 4, *range(5, 25)]), st.sampled_from([0, *[1, 1, 2, 3, 5] * 3]))


@with_each(ESTIMATORS)
@given(data=st.data())
def test_fit(estimator, data):
    n_rows, n_columns = data.draw(SHAPES)
    X, y = data.draw(tables(n_rows, n_columns)), data.draw(labels(n_rows))
    n_clusters = data.draw(st.sampled_from([1, 2, 2, 2, 3, "silhouette", "elbow"]))
    model = clone(estimator).set_params(n_clusters=n_clusters)
    _, message = attempt(lambda: model.fit(X, y))
    if message is not None:
        is_deep = isinstance(model, DeepNCD)
        excuses = [*excuses_for_rows(X, np.float32 if is_deep else np.float64), *excuses_for_labels(y)]
        n_unlabeled = sum(map(is_missing, y))
        excuses += ["no labelled row"] * (n_unlabeled == n_rows)
        excuses += ["single known class"] * (len({str(value) for value in y if not is_missing(value)}) == 1)
        excuses += ["no unlabelled row|0 unlabelled row"] * (n_unlabeled == 0)
        excuses += ["mark at least two rows to cluster"] * (n_unlabeled == 1)
        if isinstance(n_clusters, str):
            unlabeled = X if sparse.issparse(X) else np.asarray(X)[[is_missing(label) for label in y]]
            excuses += [f"among the rows to cluster .*{excuse}" for excuse in excuses_for_rows(unlabeled)]
            excuses += ["rows to cluster, [0-9]+ of them distinct: too few"]
        else:
            excuses += [f"n_clusters={n_clusters} is more than the"] * (n_clusters > n_unlabeled)
        if is_deep and not sparse.issparse(X) and np.abs(np.asarray(X)).max(initial=0) > 1e4:
            excuses += ["training diverged"]
        assert any(re.search(excuse, message) for excuse in excuses), (message, excuses)
        return
    unlabeled = np.array([is_missing(label) for label in y])
    assert_clusters(model.labels_[unlabeled], model.n_clusters_)
    assert (model.labels_[~unlabeled] == -1).all()
    assert model.n_clusters_ == n_clusters or isinstance(n_clusters, str)
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), name
    predicted, message = attempt(lambda: model.predict(X))
    assert message is None
    assert_clusters(predicted, model.n_clusters_)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 5)), np.repeat([0, 1, -1], [6, 6, 8])
    return {type(e): clone(e).fit(X, y) for e in ESTIMATORS}


@with_each(ESTIMATORS)
@given(data=st.data())
def test_predict(fitted, estimator, data):
    model = fitted[type(estimator)]
    X = data.draw(tables(data.draw(st.integers(0, 5)), data.draw(st.sampled_from([5, 5, 5, 5, 5, 2, 6, 0]))))
    predicted, message = attempt(lambda: model.predict(X))
    if message is not None:
        excuses = [*excuses_for_rows(X, model._precision, fitting=False), "expecting 5 features"]
        assert any(re.search(excuse, message) for excuse in excuses), (message, excuses)
    else:
        assert len(predicted) == len(X)
        assert_clusters(predicted, 2)
    if hasattr(model, "transform"):
        places, again = attempt(lambda: model.transform(X))
        assert again == message
        assert places is None or np.isfinite(places).all()


@given(data=st.data())
def test_number_of_clusters(data):
    n_rows, n_columns = data.draw(SHAPES)
    X, index = data.draw(tables(n_rows, n_columns)), data.draw(st.sampled_from(INDICES))
    known = {}
    if index == "km_acc":
        n_known = data.draw(st.integers(0, 8))
        known = {"X_known": data.draw(tables(n_known, n_columns)), "y_known": data.draw(labels(n_known))}
    estimate, message = attempt(lambda: estimate_n_clusters(X, index, n_runs=1, n_init=2, random_state=0, **known))
    if message is not None:
        excuses = [*excuses_for_rows(X), "rows to cluster, [0-9]+ of them distinct: too few"]
        if known:
            excuses += [*excuses_for_rows(known["X_known"]), *excuses_for_labels(known["y_known"]), "has unlabelled"]
        assert any(re.search(excuse, message) for excuse in excuses), (message, excuses)
    else:
        assert 1 <= estimate.n_clusters < n_rows
        assert not np.isnan(estimate.scores[index][estimate.k_range > 1]).any()


@given(data=st.data())
def test_hidden_class_folds(data):
    y = data.draw(labels(data.draw(st.integers(0, 15))))
    folds, message = attempt(lambda: list(HiddenClassKFold().split(y=y)))
    if message is not None:
        excuses = [*excuses_for_labels(y), "hiding . known classes needs at least|0 labels"]
        assert any(re.search(excuse, message) for excuse in excuses), (message, excuses)
    for fold in folds or []:
        assert sorted(np.concatenate([fold.visible, fold.hidden, fold.novel])) == list(range(len(y)))
        assert [is_missing(y[i]) for i in range(len(y))] == [i in fold.novel for i in range(len(y))]


WORDS = ["red", "blue", "<script>", None]
COLUMNS = {
    "words": lambda n, rng: rng.choice(WORDS, n),
    "flags": lambda n, rng: rng.choice([True, False, None], n),
    "mixed": lambda n, rng: rng.choice(np.array([1, "a", None, 2.5, b"b"], dtype=object), n),
    "dates": lambda n, rng: pd.date_range("2020", periods=n),
    "nothing": lambda n, rng: np.full(n, None),
    "names": lambda n, rng: [f"person {i}" for i in range(n)],
    "nullable": lambda n, rng: pd.array(rng.choice([1, 2, None], n), dtype="Int64"),
    "categories": lambda n, rng: pd.Categorical(rng.choice(WORDS[:3], n)),
    "lists": lambda n, rng: [[i] for i in range(n)],
    "whole": lambda n, rng: rng.integers(-(2**62), 2**62, n),
    "complex": lambda n, rng: rng.normal(size=n) * 1j,
}


@given(data=st.data())
def test_discover(data):
    n_rows = data.draw(st.sampled_from([0, 1, 2, *range(4, 30)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    numbers = data.draw(tables(n_rows, data.draw(st.integers(0, 3))).filter(lambda X: not sparse.issparse(X)))
    table = pd.DataFrame(np.asarray(numbers)).copy()
    for kind in data.draw(st.lists(st.sampled_from([*COLUMNS, *["words", "flags", "categories"] * 4]), max_size=2)):
        table[data.draw(st.sampled_from([kind, "<script>", "", "a\nb", "$x"]))] = COLUMNS[kind](n_rows, rng)
    y = data.draw(labels(n_rows))
    n_clusters = data.draw(st.sampled_from([1, 2, 3, "silhouette"]))
    options = {"method": NCDKMeans(n_init=1), "n_seeds": 1, "verbose": False}
    found, message = attempt(lambda: discover(table, y, n_clusters=n_clusters, **options))
    if message is None:
        unlabeled = np.array([is_missing(label) for label in y])
        outlier = found.labels == -2  # a cluster of one row, where the number was estimated
        assert_clusters(found.labels[unlabeled & ~outlier], found.model.n_clusters_)
        assert (found.labels[~unlabeled] == -1).all() and (isinstance(n_clusters, str) or not outlier.any())
        assert sum(profile.size for profile in found.profiles) == (unlabeled & ~outlier).sum()
        assert np.isfinite([[d.inside, d.outside, d.standardized] for p in found.profiles for d in p.differences]).all()
        assert found.to_frame()["label"].notna().all()


# -- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([3, 10**6, -7, -1], [-7, 3, 10**6]),
        (np.array([0, 255], dtype=np.uint8), [0, 255]),
        (np.array(["cat", "dog", np.nan]), ["cat", "dog"]),  # where NumPy has made text of NaN
        ([b"cat", b"\xff", b"-1"], [b"cat", b"\xff"]),  # as scipy.io.arff has them
        (np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), [np.datetime64("2020-01-01")]),
        (pd.Series([1, 2, pd.NA], dtype="Int64"), [1, 2]),
        (pd.Categorical(["b", "a", None]), ["a", "b"]),
        ([True, False, None], [False, True]),
        (np.ma.array([1, 2, 2], mask=[0, 0, 1]), [1, 2]),
        (np.ma.array(["a", "b", "b"], mask=[0, 0, 1]), ["a", "b"]),
    ],
)
def test_labels_that_are_read(y, classes):
    codes, found = encode_labels(y)
    assert found.tolist() == np.array(classes).tolist()
    assert [code == -1 for code in codes] == [is_missing(label) for label in y]


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([1, "a", None], TypeError, r"several types \(int, str\)"),
        ((1, "a", -1), TypeError, r"several types \(int, str\)"),
        ([b"a", "a", None], TypeError, r"several types \(bytes, str\)"),
        ([1, pd.Timestamp("2020")], TypeError, "cannot be sorted .* one type for all classes"),
        (pd.Series([(1, 2), (3, 4)]), TypeError, "no single values"),
        ([[1], [2, 3]], TypeError, "no single values"),
        ([{"a": 1}, None], TypeError, "no single values"),
        ("abc", ValueError, "1d array"),
        ([[1, 2], [3, 4]], ValueError, "1d array"),
    ],
)
def test_labels_that_are_refused(y, error, message):
    with pytest.raises(error, match=message):
        encode_labels(y)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["x", "y", "z", "1"], "column 'a' holds something else than numbers .*'x'.*: encode it .* ncdlib.discover"),
        (["x" * 9_999, "y", "z", "1"], "column 'a' holds something else than numbers .{,200}$"),
        (pd.Categorical(list("xyxy")), "column 'a' holds something else than numbers"),
        (pd.date_range("2020", periods=4), "column 'a' holds something else than numbers .dates or times"),
        (pd.period_range("2020", periods=4, freq="D"), "column 'a' holds something else than numbers .*Period"),
        ([10**400, 1, 2, 3], "column 'a' holds something else than numbers .*too large"),
        ([1, 2, None, 3], "column a of X contains NaN: fill in what is missing, .* ncdlib.discover, which fills in$"),
        (pd.array([1, 2, pd.NA, 3], dtype=object), "column a of X contains NaN"),
        (np.ma.array([1.0, 2, 3, 4], mask=[0, 0, 1, 0]), "column 0 of X contains NaN"),
        (np.array(["2020", "2021"] * 2, dtype="M8[Y]"), "column 0 holds something else than numbers"),
        (np.array(["x", "y"] * 2), "column 0 holds something else than numbers"),
    ],
)
def test_rows_that_are_refused(column, message):
    X = column[:, None] if isinstance(column, np.ndarray) else pd.DataFrame({"a": column, "b": np.arange(4.0)})
    _, found = attempt(lambda: NCDKMeans(2).fit(X, [0, 1, -1, -1]))
    assert re.match(message, found), found


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.5, "a"], [2, "b"], [3, "c"], [4, "d"]], "column 1 holds something else than numbers .*'a'.*: encode it"),
        ([[1, pd.Timestamp("2020")]] * 4, "column 1 holds something else than numbers .dates or times"),
        ([[10**400, 1]] * 4, "column 0 holds something else than numbers .*too large"),
        ([[1, 2], [3], [4, 5], [6, 7]], r"X must have rows and columns, as many in each row; got .* shape \(4,\)"),
        (list("abcd"), "X must have rows and columns"),
        ([1, 2, 3, 4], "Expected 2D array"),
    ],
)
def test_lists_that_are_refused(rows, message):
    for call in (lambda: NCDKMeans(2).fit(rows, [0, 1, -1, -1]), lambda: NCDKMeans(2).fit(tuple(rows), [0, 1, -1, -1])):
        _, found = attempt(call)
        assert re.match(message, found), found


def test_columns_that_are_read_as_numbers():
    X = pd.DataFrame({"a": ["1", "2"], "b": [True, False], "c": pd.Categorical([3, 4]), "d": [5, 6]})
    np.testing.assert_array_equal(check_rows(X), [[1, 1, 3, 5], [2, 0, 4, 6]])
    assert X["a"].tolist() == ["1", "2"]  # left as it was
    np.testing.assert_array_equal(check_rows(np.ma.array([[1, 2], [3, 4]])), [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": [pd.Timestamp("2020"), pd.Timestamp("2021")]}, "classes_ holds a Timestamp, which would come"),
        ({"classes": [2**70, 1]}, "classes_ holds a int, which would come back as text"),
        ({"random_state": np.random.RandomState(0)}, "NCDKMeans: random_state: a RandomState has no JSON form"),
    ],
)
def test_what_would_not_come_back_is_not_saved(change, message, tmp_path):
    classes = change.pop("classes", ["a", "b"])
    model = NCDKMeans(1, **change).fit([[0.0], [1], [2], [3]], [*classes, None, None])
    with pytest.raises(TypeError, match=message):
        model.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("classes", [[b"a", b"b", b"c", b"\xff"], [0, 1, 2, 2**70], pd.date_range("2020", periods=4)])
def test_score_known_of_any_labels(classes):
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    X, y = problem.X, problem.y
    names = np.array([*classes, None], dtype=object)[y]
    plain, named = (PBN(2, epochs=1, random_state=0, verbose=False).fit(X, labels) for labels in (y, names))
    for rows in (y >= 0, y > 0, y == 3):
        assert named.score_known(X[rows], names[rows]) == plain.score_known(X[rows], y[rows])
    assert 0 < plain.score_known(X[y >= 0], y[y >= 0]) < 1


@pytest.mark.parametrize("clusterer", ["kmeans", "spectral"])
def test_a_model_without_clusters_says_so(clusterer):
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    model = PBN(2, epochs=1, clusterer=clusterer, verbose=False)
    (without,) = model.fit_many(problem.X, problem.y, [{}], fit_clusters=False)
    with pytest.raises(NotFittedError, match="PBN has no clusters: it was trained with fit_clusters=False"):
        without.predict(problem.X)


@pytest.mark.parametrize("method", [PBN, Baseline, TabularNCD])
def test_a_model_that_diverged_says_so(method):
    """Whatever is asked of it: the answer would be NaN."""
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    (model,) = method(2, epochs=1, verbose=False).fit_many(problem.X, problem.y, [{"lr": 1e25}])
    known = problem.y >= 0
    asked = [lambda: model.predict(problem.X), lambda: model.transform(problem.X)]
    asked += [lambda: model.score_known(problem.X[known], problem.y[known])]
    if method is not TabularNCD:
        asked += [lambda: model.cluster(problem.X, 2), lambda: model.estimate_n_clusters(problem.X)]
    for call in asked:
        assert attempt(call)[1] == f"{method.__name__} has learned nothing: its training diverged"


@pytest.mark.parametrize("arguments", [(None,), (2, None)])
def test_what_an_embedding_cannot_do_without(arguments):
    with pytest.raises(ValueError, match="n_components and s_min must be given"):
        spectral_embedding(np.eye(4), *arguments)


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "every other": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "other end first": lambda X: X.astype(X.dtype.newbyteorder()),
    "half": lambda X: X.astype(np.float16),
    "single": lambda X: X.astype(np.float32),
    "objects": lambda X: X.astype(object),
    "frame": pd.DataFrame,
    "lists": lambda X: X.tolist(),
}
NAMES = [[-5, 7, 10**6, 2**40], ["a", "b", "c", "d"], [0.25, 0.5, 1.0, 1e300]]


@with_each(ESTIMATORS)
def test_neither_layout_nor_names_of_classes_matter(estimator):
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    X = np.round(4 * problem.X) / 4  # what half precision holds as well
    expected = clone(estimator).fit(X, problem.y).labels_
    for name, change in LAYOUTS.items():
        found = clone(estimator).fit(change(X), problem.y)
        assert np.array_equal(found.labels_, expected), name
        assert np.array_equal(found.predict(change(X)), found.predict(X)), name
    for names in NAMES:
        y = [None if label == -1 else names[label] for label in problem.y]
        assert np.array_equal(clone(estimator).fit(X, y).labels_, expected), names


@pytest.mark.parametrize("factor", [1e200, 1e-200])
@with_each(ESTIMATORS)
def test_scales_that_cannot_be_squared(estimator, factor):
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    with pytest.raises(ValueError, match="to be squared in float(32|64): scale"):
        clone(estimator).fit(problem.X * factor, problem.y)


def test_unlabelled_rows_that_cannot_be_squared():
    """The labelled rows vary as they should: to blame all of X would send the reader to the wrong rows."""
    X = np.append(np.arange(6.0), 2e-300 * np.arange(6))[:, None]
    _, message = attempt(lambda: NCDKMeans("silhouette").fit(X, np.repeat([0, 1, -1], [3, 3, 6])))
    assert message.startswith("the columns of X among the rows to cluster vary by 1e-299 at most, too little")


@pytest.mark.parametrize(("dtype", "power"), [(np.float64, 110), (np.float32, 13)])
@with_each(ESTIMATORS[:3])
def test_far_from_all_that_was_learned(estimator, dtype, power):
    """What is far from rows of a tiny scale, in units of that scale, is farther than a float can be squared."""
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    model = clone(estimator).fit((problem.X * 10.0**-power).astype(dtype), problem.y)
    predicted, message = attempt(lambda: model.predict((problem.X_test * 10.0**power).astype(dtype)))
    assert message is None
    assert_clusters(predicted, 2)


@pytest.mark.parametrize(
    ("y", "message"), [([0, -1], "single known class"), ([-1, -1], "no labelled row"), ([0, 1], "no unlabelled row")]
)
@with_each(NEED_LABELS)
def test_two_rows(estimator, y, message):
    _, found = attempt(lambda: clone(estimator).set_params(n_clusters=1).fit([[0.0], [1.0]], y))
    assert message in found


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("n_rows", [2, 16, 100])
def test_spectral_clustering_of_equal_rows(n_rows):
    X = np.full((n_rows, 2), 3.0)
    assert set(SpectralClustering(2, random_state=0).fit(X).predict(X)) == {0}
    NCDSpectralClustering(1, n_iter=20, random_state=0).fit(X[[0] * 18], np.repeat([0, 1, -1], 6))


def test_a_spread_that_overflows():
    _, message = attempt(lambda: NCDKMeans(1).fit([[1e308], [-1e308], [0]], [0, 1, -1]))
    assert "too large to be squared" in message


def test_divergence_leaks_no_warning():
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    _, message = attempt(lambda: PBN(2, lr=1e25, epochs=1, verbose=False).fit(problem.X, problem.y))
    assert message.startswith("training diverged")


def test_one_labelled_row_is_left_in_a_fold():
    """A search hides two of three classes; of the third there is one row, and no statistics of a batch."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.repeat([0, 1, 2, -1], [1, 7, 7, 15])
    model = Baseline(epochs=2, verbose=False)
    search = HiddenClassSearchCV(model, {}, n_iter=1, n_clusters=2, both_settings=False, verbose=False)
    with pytest.raises(ValueError, match="Baseline is trained on labelled rows, and y has a single one"):
        search.fit(X, y)


def test_clustering_fewer_rows_than_clusters():
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    model = PBN(2, epochs=1, verbose=False).fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="n_clusters=5 is more than the 4 rows"):
        model.cluster(problem.X[:4], 5)


def test_more_distances_than_memory():
    X = np.zeros((10**7, 1))
    X[0] = 1
    with pytest.raises(ValueError, match=r"distances of 10,000,000 rows take 400,000 GB, more than"):
        SpectralClustering(2).fit(X)


def test_known_rows_that_do_not_fit():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="X_known has 2 columns, and X has 3"):
        estimate_n_clusters(X, "km_acc", X_known=X[:, :2], y_known=np.arange(20) % 2)
    with pytest.raises(ValueError, match="y_known has unlabelled rows"):
        estimate_n_clusters(X, "km_acc", X_known=X, y_known=np.arange(20) % 2 - 1)


@pytest.mark.parametrize("method", [PBN, Baseline])
def test_a_column_that_single_precision_cannot_hold_is_refused(method):
    problem = make_ncd_blobs(random_state=0)
    model = method(3, epochs=2, verbose=False, random_state=0)
    table = pd.DataFrame(problem.X).add_prefix("x")
    with pytest.raises(ValueError, match="column x1 of X varies by .* around 1e.09, too little for float32: subtract"):
        model.fit(table.assign(x1=table["x1"] + 1e9), problem.y)
    with pytest.raises(ValueError, match="column time of X varies by 0 around 1e.09"):
        model.fit(table.assign(time=1e9), problem.y)  # the others would vanish beside it
    nearly_constant = table.assign(noise=0.3 + 1e-16 * (np.arange(len(table)) % 2), time=3.0)
    assert model.fit(nearly_constant, problem.y).n_clusters_ == 3
    assert NCDKMeans(3, random_state=0).fit(table + 1e9, problem.y).n_clusters_ == 3  # in double precision


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": "foo"}, "unknown validity index 'foo'"),
        ({"sigma_rule": "bad"}, "sigma_rule must be"),
        ({"clusterer": "spectral", "s_min": 2.0}, "s_min must be"),
        ({"clusterer": "spectral", "s_min": None}, "s_min must be .*, got None"),
        ({"device": "nowhere"}, "device='nowhere'"),
        ({"device": None}, "device=None"),
        ({"device": "cuda:99"}, "device='cuda:99' cannot be used .*; use device='cpu'"),
    ],
)
def test_a_typing_error_is_found_before_the_training(change, message):
    problem = make_ncd_blobs(random_state=0)
    with pytest.raises(ValueError, match=message):
        PBN(**{"n_clusters": 3, "epochs": 10**5, "verbose": False} | change).fit(problem.X, problem.y)


@pytest.mark.parametrize("change", [{"tol": np.nan}, {"tol": "a"}, {"n_init": True}, {"draw_power": 1e4}])
def test_options_of_k_means(change):
    problem = make_ncd_blobs(random_state=0)
    with pytest.raises(ValueError, match=f"{next(iter(change))} must be"):
        NCDKMeans(3, **change).fit(problem.X, problem.y)
