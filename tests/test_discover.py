"""The whole procedure on tables as people have them: mixed columns, missing values, odd names, odd files."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
import sklearn
from faults import full_disk
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

from ncdlib import PBN, Discovery, NCDKMeans, NCDSpectralClustering, clustering_accuracy, discover, make_ncd_blobs
from ncdlib._io.files import atomic_write
from ncdlib.cli import app
from ncdlib.own_data.discover import discover_file
from ncdlib.own_data.explain import Difference, _in_words, _rule
from ncdlib.own_data.prepare import TablePreprocessor
from ncdlib.own_data.read import as_labels, read_table, write_with_columns
from ncdlib.own_data.report import _means

matplotlib.use("Agg")
EVIL = "<script>alert('x')</script> & $x"


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=0)


@pytest.fixture(scope="module")
def table(problem):
    """Numbers, categories, flags, missing values; class names with characters that HTML and matplotlib would read."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(problem.X, columns=[f"x{i}" for i in range(problem.X.shape[1])])
    first = problem.y_true == problem.novel_classes[0]
    X["colour"] = pd.Categorical(np.where(first, "red", rng.choice(["blue", EVIL], len(X))))
    X["flag"] = X["x2"] > 0
    X["whole"] = X["x1"].round().astype("Int64")
    X["same"] = 7
    X["nothing"] = np.nan
    X.loc[rng.random(len(X)) < 0.1, ["x0", "colour", "whole"]] = None
    X.index = [f"row {i}" for i in range(len(X))]
    names = np.array([EVIL, "B", "C", "D", "?"], dtype=object)[problem.y]
    return X, np.where(problem.y == -1, None, names)


@pytest.fixture(scope="module")
def found(table):
    return discover(*table, method="ncd_kmeans", verbose=False)


def test_finds_the_classes_of_a_mixed_table(problem, found):
    novel = problem.y == -1
    assert isinstance(found, Discovery) and found.n_clusters == 3
    assert clustering_accuracy(problem.y_novel, found.labels[novel]) > 0.95
    assert (found.labels[~novel] == -1).all()
    assert found.stability > 0.9
    assert found.estimate.n_clusters == 3 and len(found.estimate.scores["silhouette"]) > 10
    assert any("'same' was left out" in note for note in found.notes)
    assert any("needs no search" in note for note in found.notes)


def test_profiles_say_what_the_classes_are(problem, table, found):
    X, y = table
    novel = problem.y == -1
    red = found.labels[(problem.y_true == problem.novel_classes[0]) & novel][0]
    profile = next(p for p in found.profiles if p.cluster == red)
    assert profile.differences[0].feature == "colour is red"
    assert profile.differences[0].inside > 0.8 and profile.differences[0].outside < 0.05
    assert sum(p.size for p in found.profiles) == novel.sum()
    assert sum(p.share for p in found.profiles) == pytest.approx(1)
    for p in found.profiles:
        member = found.labels == p.cluster
        difference = next(d for d in p.differences if d.feature == "x3")
        spread = X["x3"].std(ddof=0)
        assert difference.inside == pytest.approx(X["x3"][member].mean())
        expected = (X["x3"][member].mean() - X["x3"][~member].mean()) / spread
        assert difference.standardized == pytest.approx(expected)
        strengths = [abs(d.standardized) for d in p.differences]
        assert strengths == sorted(strengths, reverse=True)
        assert p.nearest_known in {EVIL, "B", "C", "D"}


def check_rules(found, table):
    """Read every rule back as a person would, and compare with the precision and recall that it is said to have."""
    for p in found.profiles:
        under = np.ones(len(table), dtype=bool)
        for condition in p.rule.split(" and "):
            under &= table.eval(condition).to_numpy()
        member = found.labels == p.cluster
        assert (under & member).sum() / under.sum() == pytest.approx(p.rule_precision), p.rule
        assert (under & member).sum() / member.sum() == pytest.approx(p.rule_recall), p.rule


def test_rules_hold_for_the_rows_they_describe(problem):
    """A rule as it is printed, whatever the unit: years, seconds since 1970, cents, thousandths."""
    X = (problem.X - problem.X.mean(axis=0)) / problem.X.std(axis=0)
    table = pd.DataFrame(
        {
            "year": 2015 + np.round(2 * X[:, 0]),
            "epoch": 1.7e9 + np.round(1e5 * X[:, 1]),
            "cents": 1_234_000 + np.round(300 * X[:, 2]),
            "share": np.round(0.5 + 0.001 * X[:, 3], 4),
            "x": X[:, 4],
        }
    )
    found = discover(table, problem.y, method="ncd_kmeans", n_clusters=3, verbose=False)
    check_rules(found, table)
    assert "e+" not in " ".join(p.rule for p in found.profiles)
    assert min(p.rule_precision for p in found.profiles) > 0.8
    # Learned from a sample, a rule is still measured on all rows.
    sample = discover(table, problem.y, method="ncd_kmeans", n_clusters=3, max_rows=60, verbose=False)
    check_rules(sample, table)


def test_rules_read_well():
    from ncdlib.own_data.prepare import Feature

    features = [Feature("age"), Feature("colour", "red"), Feature("size"), Feature("shape", "round")]
    bounds = {0: (18.0, 40.0), 1: (0.5, np.inf), 2: (-np.inf, 3.142), 3: (-np.inf, 0.5)}
    assert _in_words(bounds, features) == "18 < age <= 40 and colour is red and size <= 3.142 and shape is not round"
    assert _rule(np.zeros((6, 1)), np.array([1, 1, 0, 0, 0, 0], dtype=bool)) == {}
    years = np.repeat(np.arange(2012.0, 2020.0), 3)[:, None]
    assert _rule(years, years[:, 0] > 2015) == {0: (2015.5, np.inf)}  # no digit less tells 2015 from 2016


def test_means_are_written_with_the_digits_that_matter():
    assert _means(Difference("year", 2016.83, 2011.91, 1.6)) == ("2016.8", "2011.9")
    assert _means(Difference("amount", 12951.3, 1033.2, 1.5)) == ("12,951", "1,033")
    assert _means(Difference("colour is red", 0.931, 0.04, 2.0)) == ("0.93", "0.04")
    assert _means(Difference("tiny", 2e-12, 1e-12, 1.0)) == ("2e-12", "1e-12")
    assert _means(Difference("same", 5.0, 5.0, 0.0)) == ("5", "5")


def test_names_of_a_second_round(problem):
    known = pd.Series(problem.y).map({c: f"new {i + 1}" for i, c in enumerate(problem.known_classes)})
    found = discover(problem.X, known, method="ncd_kmeans", n_clusters=3, verbose=False)
    n = len(problem.known_classes)
    assert [p.name for p in found.profiles] == [f"new {n + 1}", f"new {n + 2}", f"new {n + 3}"]
    assert set(found.to_frame()["label"][problem.y == -1]) == {p.name for p in found.profiles}


def test_to_frame_and_predict(problem, table, found):
    X, y = table
    frame = found.to_frame()
    assert list(frame.index) == list(X.index)
    known = problem.y != -1
    assert (frame["label"][known] == y[known]).all() and not frame["discovered"][known].any()
    assert set(frame["label"][~known]) == {"new 1", "new 2", "new 3"} and frame["discovered"][~known].all()
    np.testing.assert_array_equal(found.predict(X[~known]), found.labels[~known])
    assert found.summary()["rows"].sum() == (~known).sum()


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.links = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]


def test_report_is_one_page_that_executes_nothing(found, tmp_path):
    path = found.report(tmp_path / "report.html")
    html = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(html)
    assert "script" not in tags.seen and "link" not in tags.seen
    assert all(link.startswith("data:image/png;base64,") for link in tags.links) and len(tags.links) == 1
    assert "&lt;script&gt;alert(" in html and "<script>" not in html
    assert "http://" not in html and "https://" not in html
    for p in found.profiles:
        assert f">{p.name}<" in html
    assert "default-src 'none'" in html
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_table_of_one_column(problem, tmp_path):
    found = discover(problem.X[:, :1], problem.y, method="ncd_kmeans", n_clusters=2, verbose=False)
    html = found.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "feature 0" in html and set(found.labels) == {-1, 0, 1}


def test_plot_draws_three_panels(found):
    with matplotlib.rc_context({"axes.titlelocation": "center"}):  # whatever style was set before
        figure = found.plot()
    figure.canvas.draw()  # names with a dollar sign are no mathematics
    titles = [ax.get_title() for ax in figure.axes[:3]]
    assert titles[0] == "How many classes?" and "sets each class apart" in titles[2]
    matplotlib.pyplot.close(figure)


def test_with_a_search(problem):
    """Numbers in an array; the search decides the hyperparameters, and the report says so."""
    options = {"method": PBN(epochs=10), "n_trials": 2, "cv": 2, "n_seeds": 2, "n_clusters": 3, "verbose": False}
    found = discover(problem.X, problem.y, **options)
    assert found.search.cv_results_["mean_test_score"].shape == (2,)
    for name, value in found.search.best_params_.items():
        assert getattr(found.model, name) == value
    assert found.n_clusters == found.model.n_clusters_ == 3
    again = discover(problem.X, problem.y, **options)
    np.testing.assert_array_equal(found.labels, again.labels)
    assert found.stability == again.stability


def test_a_given_number_of_classes_is_kept(problem):
    found = discover(problem.X, problem.y, method="ncd_kmeans", n_clusters=2, verbose=False)
    assert found.n_clusters == 2 and found.estimate.n_clusters == 3


def test_methods_by_name(problem):
    found = discover(problem.X, problem.y, method="ncd_sc", n_seeds=1, verbose=False)
    assert isinstance(found.model, NCDSpectralClustering) and found.n_clusters == found.estimate.n_clusters
    with pytest.raises(ValueError, match="unknown method 'dbscan': choose from pbn"):
        discover(problem.X, problem.y, method="dbscan")


def test_two_known_classes_are_enough_without_a_search(problem):
    some = np.isin(problem.y, [-1, *problem.known_classes[:2]])
    model = PBN(epochs=5, verbose=False)
    found = discover(problem.X[some], problem.y[some], method=model, n_seeds=1, verbose=False)
    assert found.search is None
    assert any("at least 3 of them, and there are 2" in note for note in found.notes)
    assert found.n_clusters == found.estimate.n_clusters == found.model.n_clusters_


def test_other_seeds_show_what_is_unstable():
    """One round cloud has no classes: a partition of it depends on chance, and the stability says so."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(300, 6)), rng.normal(size=(60, 6)) + 6, rng.normal(size=(60, 6)) - 6]
    y = np.r_[np.full(300, -1), np.zeros(60), np.ones(60)]
    found = discover(X, y, method=NCDKMeans(n_init=1), n_clusters=6, verbose=False)
    assert found.stability < 0.7
    assert max(p.stability for p in found.profiles) < 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": lambda y: np.where(y == -1, 0, y)}, "no row is unlabelled"),
        ({"y": lambda y: np.where(y == 0, 0, -1)}, "at least two known classes .* there is one, "),
        ({"y": lambda y: np.full(len(y), None)}, "at least two known classes .* there is none"),
        ({"y": lambda y: y[:-1]}, "inconsistent"),
        ({"n_seeds": 0}, "n_seeds must be a positive integer, got 0"),
        ({"n_seeds": "a"}, "n_seeds must be a positive integer, got 'a'"),
        ({"max_rows": "a"}, "max_rows must be a positive integer, got 'a'"),
        ({"random_state": -1}, "random_state must be None or an integer from 0"),
        ({"random_state": "a"}, "random_state must be None or an integer from 0"),
    ],
)
def test_clear_errors(problem, change, message):
    y = change.pop("y", lambda y: y)(problem.y)
    with pytest.raises(ValueError, match=message):
        discover(problem.X, y, method="ncd_kmeans", verbose=False, **change)


@pytest.mark.parametrize("seed", [None, 2**32 - 1])
def test_any_seed(problem, seed):
    found = discover(problem.X, problem.y, method="ncd_kmeans", random_state=seed, max_rows=150, verbose=False)
    assert found.n_clusters == 3 and found.stability > 0.9


def test_masked_cells_are_missing(problem):
    mask = np.random.default_rng(0).random(problem.X.shape) < 0.05
    preprocessor = TablePreprocessor().fit(np.where(mask, np.nan, problem.X))
    masked = np.ma.array(np.where(mask, 1e9, problem.X), mask=mask)
    expected = preprocessor.transform(np.where(mask, np.nan, problem.X))
    np.testing.assert_array_equal(preprocessor.transform(masked), expected)


# -- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([f"Mr {i}" for i in range(100)], "'new' is text \\(100 different values in 100 rows\\)"),
        (pd.date_range("2020", periods=100), "'new' holds dates"),
        ([np.inf, *range(99)], "'new' has infinite values"),
        ([f"2024-01-{i % 28 + 1:02d}" for i in range(100)], "'new' holds dates"),
        ([*map(str, range(99)), "error"], "'new' has numbers, but also values like 'error': write plain numbers"),
        ([f"{i % 7} %" for i in range(100)], "'new' has numbers, but also values like '0 %'"),
        ([f"${i}.50" for i in range(100)], r"'new' has numbers, but also values like '\$0.50'"),
    ],
)
def test_columns_without_meaning_are_refused_by_name(column, message):
    X = pd.DataFrame({"x": np.arange(100.0), "new": column})
    with pytest.raises(ValueError, match=message):
        TablePreprocessor().fit(X)


def test_all_refused_columns_are_named_at_once():
    X = pd.DataFrame({"x": np.arange(100.0), "who": [f"Mr {i}" for i in range(100)]})
    X["when"] = [f"2024-{i % 12 + 1:02d}-01" for i in range(100)]
    with pytest.raises(ValueError, match="the column 'who' is text .*; the column 'when' holds dates"):
        TablePreprocessor().fit(X)


def test_what_should_be_known_about_columns_is_noted():
    gaps = [None] * 80 + [*range(20)]
    X = pd.DataFrame({"x": np.arange(100.0), "gaps": gaps, "empty": None, "same": 1})
    X["decimal"] = [Decimal(i) / 10 for i in range(100)]
    preprocessor = TablePreprocessor().fit(X)
    assert preprocessor.notes_ == [
        "The column 'gaps' is missing in 80% of the rows: its median stands in.",
        "The column 'empty' was left out: it is empty.",
        "The column 'same' was left out: it has a single value.",
    ]
    assert [str(f) for f in preprocessor.features_] == ["x", "gaps", "decimal"]


def test_columns_become_numbers_and_names():
    X = pd.DataFrame({"n": [1.0, None, 3.0, 5.0] * 50, "c": (["a", "b", None, "a"] * 50)})
    X.loc[0, "c"] = "once"
    preprocessor = TablePreprocessor().fit(X)
    assert [str(f) for f in preprocessor.features_] == ["n", "c is (missing)", "c is a", "c is b", "c is a rare value"]
    Z = preprocessor.transform(X)
    assert Z[:, 0].mean() == pytest.approx(0) and Z[:, 0].std() == pytest.approx(1)
    np.testing.assert_allclose(preprocessor.readable(Z)[:4, 0], [1, 3, 3, 5])
    np.testing.assert_array_equal(Z[:4, 1:], [[0, 0, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]])
    unseen = preprocessor.transform(pd.DataFrame({"n": [2.0], "c": ["never seen"]}))
    assert unseen[0, -1] == 1
    with pytest.raises(ValueError, match="no column 'c'"):
        preprocessor.transform(X[["n"]])
    with pytest.raises(ValueError, match="column 'n' holds something else than numbers .*'a'.: give numbers, as in"):
        preprocessor.transform(X.assign(n="a"))


def test_odd_tables():
    with pytest.raises(ValueError, match="rows and columns"):
        TablePreprocessor().fit(np.arange(4))
    with pytest.raises(ValueError, match="'a' is there twice"):
        TablePreprocessor().fit(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="no column is left"):
        TablePreprocessor().fit(np.ones((5, 2)))
    levels = pd.DataFrame([[1, 2], [3, 4]], columns=pd.MultiIndex.from_tuples([("size", "mean"), ("size", 2)]))
    assert [str(f) for f in TablePreprocessor().fit(levels).features_] == ["size mean", "size 2"]
    only_categories = TablePreprocessor().fit(pd.DataFrame({"c": list("abab")}))
    Z = only_categories.transform(pd.DataFrame({"c": list("ba")}))
    np.testing.assert_array_equal(only_categories.readable(Z), [[0, 1], [1, 0]])
    mixed = np.array([[1, "a"], [2, "b"], [3, "a"]], dtype=object)
    assert [str(f) for f in TablePreprocessor().fit(mixed).features_] == [
        "feature 0",
        "feature 1 is a",
        "feature 1 is b",
    ]


# -- files and the command line -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
        (b"\xef\xbb\xbfa,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
        (b"a;b\n1,5;x\n2,25;y\n", {"a": [1.5, 2.25], "b": ["x", "y"]}),
        (b"a\tb\n1\tx\n2\ty\n", {"a": [1, 2], "b": ["x", "y"]}),
        ("a,b\n1,é\n2,ü\n".encode("latin-1"), {"a": [1, 2], "b": ["é", "ü"]}),
        (b"a,b\r\n1,x\r\n?,y\r\n", {"a": [1, np.nan], "b": ["x", "y"]}),
        (b"a\n1\n2\n", {"a": [1, 2]}),
        (b"a,b\n1,x,\n2,y,\n", {"a": [1, 2], "b": ["x", "y"]}),  # a separator ends each row
        (b"sep=;\na;b\n1;x\n2;y\n", {"a": [1, 2], "b": ["x", "y"]}),
        (b"a;b\n1.234,56;x\n78,9;y\n", {"a": [1234.56, 78.9], "b": ["x", "y"]}),
        (b"a;b\n0,125;x\n0,250;y\n", {"a": [0.125, 0.25], "b": ["x", "y"]}),
        (b"a,b\n1,None\n2,NA\n3,x\n", {"a": [1, 2, 3], "b": [None, None, "x"]}),
    ],
)
def test_read_csv_as_people_write_it(tmp_path, content, expected):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    pd.testing.assert_frame_equal(read_table(path), pd.DataFrame(expected), check_dtype=False)


@pytest.fixture(scope="module")
def csv_file(problem, tmp_path_factory):
    table = pd.DataFrame(problem.X, columns=[f"x{i}" for i in range(problem.X.shape[1])]).round(4)
    table["class"] = np.where(problem.y == -1, np.nan, problem.y)
    path = tmp_path_factory.mktemp("tables") / "mine.csv"
    table.to_csv(path, index=False)
    return path


def test_command_line(problem, csv_file, tmp_path):
    """The real command, in its own process: table at the end, labels and report on disk."""
    ncd = Path(sys.executable).with_name("ncd")
    command = [ncd, "discover", csv_file, "--label-column", "class", "--method", "ncd_kmeans"]
    command += ["-o", tmp_path / "labels.csv", "--report", tmp_path / "report.html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    first, note, header, *classes, last = done.stdout.splitlines()
    counts = ", ".join(f"{c} ({np.sum(problem.y == c)})" for c in problem.known_classes)
    assert first == f"{np.sum(problem.y == -1)} unlabelled rows; known classes: {counts}"
    assert note.startswith("note: NCDKMeans needs no search")
    assert "nearest known" in header and last == "3 classes; stability over seeds 1.00"
    rules = [line[header.index("rule") :] for line in classes]  # begin below each other, whatever their length
    assert len(rules) == 3 and all(rule.startswith("x") for rule in rules), done.stdout
    labels = pd.read_csv(tmp_path / "labels.csv")
    known = problem.y != -1
    assert (labels["ncd_label"][known] == problem.y[known].astype(str)).all()  # whole numbers, not 0.0
    assert adjusted_rand_score(problem.y_novel, labels["ncd_label"][~known]) > 0.95
    assert "class" in labels and (tmp_path / "report.html").stat().st_size > 10_000


def test_command_line_with_a_search_and_parquet(csv_file, tmp_path):
    table = tmp_path / "mine.parquet"
    pd.read_csv(csv_file).to_parquet(table)
    arguments = ["discover", str(table), "--label-column", "class", "--trials", "1", "--jobs", "1", "--clusters", "3"]
    arguments += ["-o", str(tmp_path / "labels.parquet"), "--store", str(tmp_path / "search.csv")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "search: 100%" in done.output and "best score" in done.output  # the progress bar
    assert len(pd.read_csv(tmp_path / "search.csv")) == 5
    assert "ncd_label" in pd.read_parquet(tmp_path / "labels.parquet")


def test_ctrl_c_is_one_line_and_the_same_command_goes_on(csv_file, tmp_path):
    """As in a terminal: the signal goes to the command and to its workers."""
    store = tmp_path / "search.csv"
    command = [Path(sys.executable).with_name("ncd"), "discover", csv_file, "--label-column", "class"]
    command += ["--jobs", "2", "--store", store, "--clusters", "3", "--trials"]
    process = subprocess.Popen(
        [*command, "500"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # also behind a shell's "&"
    )
    while not store.exists() or len(store.read_text().splitlines()) < 10:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    *progress, last = filter(None, errors.splitlines())
    assert last == "stopped; the same command goes on where the search was"
    assert [line for line in progress if not line.startswith("search: ")] == []
    before = store.read_text()
    done = subprocess.run([*command, "1"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert store.read_text().startswith(before)


def test_ctrl_c_tells_of_the_store_that_was_not_asked_for(csv_file):
    command = [Path(sys.executable).with_name("ncd"), "discover", csv_file, "--label-column", "class", "--jobs", "1"]
    process = subprocess.Popen(
        [*command, "--trials", "500"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while (seen := process.stderr.read(1)) != "%":  # the progress bar of the search
        assert seen, "it ended before it could be stopped"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.endswith("\nstopped; with --store FILE, the same command would go on where the search was\n")
    assert "Traceback" not in errors


def test_labels_of_a_file(tmp_path):
    path = tmp_path / "faults.csv"
    kinds = ["None", " bearing ", "bearing", "01", "1", "", "?", "NA", " -1", "  "]
    path.write_text("x,fault\n" + "".join(f"{i},{kinds[i % 10]}\n" for i in range(200)))
    table, found = discover_file(path, "fault", method="ncd_kmeans", n_clusters=2, verbose=False)
    labels = found.to_frame()
    assert set(labels["label"][~labels["discovered"]]) == {"None", "bearing", "01", "1"}  # no fault is a class, too
    assert labels["discovered"].sum() == 100
    assert table["fault"].iloc[3] == "01"  # as it was
    path.write_text("x,code\n" + "".join(f"{i},{['01', '1', '02', ''][i % 4]}\n" for i in range(200)))
    _, found = discover_file(path, "code", method="ncd_kmeans", n_clusters=2, verbose=False)
    assert set(found.known) == {"01", "1", "02", None}
    assert as_labels(pd.Series([0.0, 1.0, np.nan])).tolist() == [0, 1, pd.NA]
    with pytest.raises(ValueError, match="'kind' has labels that are no single values"):
        as_labels(pd.Series([[1], [2]], name="kind"))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1.10", "1.1", "7"], ["1.10", "1.1", "7"]),
        (["12345678901234567890", "12345678901234567891", ""], ["12345678901234567890", "12345678901234567891", None]),
        (["1.0", "1", "+2", "2.", "0.5"], [1, 1, 2, 2, 0.5]),
    ],
)
def test_different_labels_stay_different_classes(texts, expected):
    assert as_labels(pd.Series(texts)).tolist() == expected


def test_what_a_killed_process_left_is_removed_in_time(tmp_path):
    for name, age in ((".a.csv.1.part", 2), (".a.csv.2.part", 0), (".b.csv.1.part", 2)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age * 3600,) * 2)
    with atomic_write(tmp_path / "a.csv") as file:
        file.write(b"1")
    assert sorted(os.listdir(tmp_path)) == [".a.csv.2.part", ".b.csv.1.part", "a.csv"]


def test_full_disk_names_the_file(tmp_path):
    with full_disk(tmp_path, 2**16):
        with pytest.raises(OSError, match="labels.csv") as caught, atomic_write(tmp_path / "labels.csv") as file:
            file.write(bytes(2**18))
        assert caught.value.filename == str(tmp_path / "labels.csv") and os.listdir(tmp_path) == []


def test_a_method_that_does_not_know_labelled_rows_is_refused(problem):
    with pytest.raises(ValueError, match="KMeans puts labelled rows into clusters"):
        discover(problem.X, problem.y, method=KMeans(n_init=1), n_clusters=3, n_seeds=1, verbose=False)


def test_parquet_as_pandas_writes_it(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({0: [1.0, 2.0], 7: ["a", "b"]}).to_parquet(path)
    assert list(read_table(path).columns) == ["0", "7"]
    with pytest.raises(ValueError, match="has no column 'label': it has 0, 7"):
        discover_file(path, "label")
    lists = tmp_path / "lists.parquet"
    pd.DataFrame({"x": [1.0, 2.0], "label": [[1], [2]]}).to_parquet(lists)
    with pytest.raises(ValueError, match="'label' has labels that are no single values"):
        discover_file(lists, "label")


def test_links_and_pipes_are_written_through(tmp_path):
    target, link, pipe = tmp_path / "target.csv", tmp_path / "link.csv", tmp_path / "pipe"
    target.write_text("old")
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink() and target.read_text() == "new"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    with atomic_write(pipe) as file:
        file.write(b"through")
    assert reader.communicate(timeout=60)[0] == b"through" and pipe.is_fifo()


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (None, [], "there is no file"),
        (b"x,class\n1,a\n2,b\n3,\n", ["-o", "mine.csv"], "mine.csv is named twice"),
        (b"x,class\n1,a\n2,b\n3,\n", ["-o", "new.csv", "--report", "./new.csv"], "new.csv is named twice"),
        (b"x,class\n1,a\n2,b\n3,\n", ["-o", "new.csv.gz"], "give a name that ends in .csv or .parquet"),
        (b"x,class\n1,a\n2,b\n3,\n", ["-o", "-"], "cannot write -"),
        (b"PAR1 and so on", [], "is a Parquet file: give it a name that ends in .parquet"),
        (b"x,class\n1,a,2\n2,b,3\n", [], "its rows have more fields than its header has names (2)"),
        (b"x;class\n11,920;a\n2,500;b\n", [], "has numbers like 11,920: write 11920 if the comma marks thousands"),
        (b"ncd_label,x\na,1\nb,2\n,3\n", ["--label-column", "ncd_label"], "as a result has: rename it"),
        (b"", [], "is empty"),
        (b"  \n", [], "is empty"),
        (b"x,class\n", [], "has no rows"),
        (b"PK\0\0\0binary", [], "is not a text file"),
        (b'x,class\n1,a\n"2,b\n3,c\n', [], "is not a table that can be read"),
        (b"x,Class\n1,a\n2,b\n", [], "has no column 'class': did you mean 'Class'?"),
        (b"x,class\n1,a\n2,b\n", ["--drop", "z"], "has no column 'z'"),
        (b"x,class\n1,a\n2,b\n3,a\n", [], "no row is unlabelled"),
        (b"x,class\n1,a\n2,a\n3,\n", [], "at least two known classes are needed to learn from, and there is one, 'a'"),
        (
            b"x,name,class\n" + b"".join(b"%d,person %d,%s\n" % (i, i, [b"a", b"b", b""][i % 3]) for i in range(30)),
            [],
            "the column 'name' is text (30 different values in 30 rows)",
        ),
        (b"x,class\n1,a\n2,b\n3,\n", ["--method", "magic"], "unknown method 'magic'"),
        (b"x,class\n1,a\n2,b\n3,\n", ["--report", "/nowhere/at/all.html"], "cannot write /nowhere/at/all.html"),
    ],
)
def test_one_line_errors(tmp_path, content, arguments, message, monkeypatch, capsys):
    from ncdlib import cli

    path = tmp_path / "mine.csv"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ncd", "discover", str(path), "--label-column", "class", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    text = str(stop.value)
    assert re.match("ncd: ", text) and message in text and "\n" not in text
    assert content is None or path.read_bytes() == content


@pytest.mark.parametrize("name", ["table.csv.gz", "table.xlsx"])
def test_files_of_other_kinds(tmp_path, name):
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(ValueError, match="unpack it first|save it as CSV"):
        read_table(tmp_path / name)


def save_often(path):
    for i in range(300):
        with atomic_write(path) as file:
            file.write(b"%d" % i)


def test_two_processes_write_one_file(tmp_path):
    """Either may find the other's unfinished file, and the next moment not."""
    with ProcessPoolExecutor(2) as pool:
        assert list(pool.map(save_often, [tmp_path / "a.csv"] * 2)) == [None, None]
    assert os.listdir(tmp_path) == ["a.csv"] and (tmp_path / "a.csv").read_bytes() == b"299"


def test_line_ends_inside_a_class_name(tmp_path, problem):
    """A file of Windows that is read as latin-1 has some: its three dots are byte 85."""
    table = pd.DataFrame(problem.X).add_prefix("x")
    table["class"] = [f"caf\x85{label}" if label >= 0 else "" for label in problem.y]
    (tmp_path / "t.csv").write_bytes(table.to_csv(index=False).encode("latin-1"))
    files = [str(tmp_path / "t.csv"), "--output", str(tmp_path / "found.csv")]
    done = CliRunner().invoke(app, ["discover", *files, "--label-column", "class", "--method", "ncd_kmeans"])
    assert done.exit_code == 0, done.output
    assert len(pd.read_csv(tmp_path / "found.csv", encoding="latin-1")) == len(table)  # byte for byte as it was


def run_on(tmp_path, content, *arguments, name="t.csv"):
    (tmp_path / name).write_bytes(content)
    command = ["discover", str(tmp_path / name), "--label-column", "class", "--method", "ncd_kmeans", "--clusters", "2"]
    return CliRunner().invoke(app, [*command, *arguments], catch_exceptions=False)


@pytest.mark.parametrize(
    ("encoding", "start"),
    [("utf-8", ""), ("utf-8-sig", ""), ("latin-1", ""), ("utf-16", ""), ("utf-8", "sep=;\n")],
)
def test_the_table_is_written_as_it_was_read(tmp_path, encoding, start):
    """Codes, long numbers, decimal commas, words for nothing, quoted separators: cell for cell."""
    words, classes = ["NA", "None"] * 15, [*"ab" * 10, *[""] * 10]
    rows = [f'{i:06d};{2**53 + 1 + i};-{i},50;{words[i]};"ä;{i % 3}";{classes[i]}' for i in range(30)]
    rows[3] = rows[3].replace(str(2**53 + 4), "")
    header = "id;long;x;word;two words;class"
    output = tmp_path / "out.csv"
    content = (start + "\n".join([header, *rows]) + "\n").encode(encoding)
    done = run_on(tmp_path, content, "-o", str(output), "--drop", "id", "--drop", "long")
    assert done.exit_code == 0, done.output
    read = output.read_bytes().decode(encoding).removeprefix(start).splitlines()
    assert read[0] == header + ";ncd_label;ncd_discovered"
    assert [line.rsplit(";", 2)[0] for line in read[1:]] == rows
    assert {line.rsplit(";", 2)[1][:3] for line in read[21:]} == {"new"}
    assert output.read_bytes().startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")


def test_the_table_is_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("ncdlib.own_data.read.ROWS_AT_ONCE", 7)
    rows = [f"{i},{i % 4},{'ab'[i % 2] if i < 20 else ''}" for i in range(30)]
    done = run_on(tmp_path, "\n".join(["x,y,class", *rows]).encode(), "-o", str(tmp_path / "out.csv"))
    assert done.exit_code == 0, done.output
    read = (tmp_path / "out.csv").read_text().splitlines()
    assert [line.rsplit(",", 2)[0] for line in read[1:]] == rows


def test_a_file_that_changes_meanwhile_is_not_mixed_with_old_labels(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,class\n1,a\n2,b\n")
    with pytest.raises(ValueError, match=r"t\.csv has changed since it was read"), open(tmp_path / "o", "wb") as file:
        write_with_columns(path, pd.DataFrame({"ncd_label": ["a", "b", "new 1"]}), file)


def test_the_index_of_a_parquet_file_stays_in_a_csv(csv_file, tmp_path):
    table = pd.read_csv(csv_file)
    table.set_index("row " + table.index.astype(str)).to_parquet(tmp_path / "t.parquet")
    command = ["discover", str(tmp_path / "t.parquet"), "--label-column", "class", "--method", "ncd_kmeans"]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    assert pd.read_csv(tmp_path / "out.csv", index_col=0).index[-1] == f"row {len(table) - 1}"


def test_an_output_file_stays_private(tmp_path):
    path = tmp_path / "out.csv"
    path.touch(mode=0o600)
    with atomic_write(path) as file:
        file.write(b"x")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_flag_and_nothing_are_two_categories():
    table = pd.DataFrame({"x": range(6), "alarm": ["Y", None] * 3, "one": [1.0, np.nan] * 3})
    preprocessor = TablePreprocessor().fit(table)
    assert list(map(str, preprocessor.features_)) == ["x", "alarm is (missing)", "alarm is Y"]
    assert "The column 'one' was left out: it has a single value and gaps." in preprocessor.notes_


def test_numbers_with_a_slip_are_told_of_when_they_become_categories():
    table = pd.DataFrame({"retries": [*map(str, [0, 1, 2] * 10), "error"], "word": [*"ab" * 15, "c"]})
    notes = TablePreprocessor().fit(table).notes_
    assert notes == ["The column 'retries' was taken as categories: beside numbers, it has values like 'error'."]


def test_a_category_that_looks_like_a_number_is_known_again_beside_gaps():
    preprocessor = TablePreprocessor().fit(pd.DataFrame({"code": ["1", "2", "A"] * 4}))
    whole, with_gap = (preprocessor.transform(pd.DataFrame({"code": codes})) for codes in ([1, 2], [1.0, 2.0, np.nan]))
    assert whole.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert with_gap[:2].tolist() == whole.tolist()


def test_row_numbers_are_told_of():
    table = pd.DataFrame({"Unnamed: 0": range(9), "id": range(5, 14), "x": [3, 1, 2] * 3})
    preprocessor = TablePreprocessor().fit(table)
    assert list(map(str, preprocessor.features_)) == ["id", "x"]
    assert preprocessor.notes_ == [
        "The column 'Unnamed: 0' was left out: it has no name, and numbers the rows.",
        "The column 'id' goes up by one from row to row: leave it out if it numbers the rows.",
    ]


def test_versions_are_no_dates():
    versions = ["1.2.3", "10.2.3", "1.12.4"] * 5
    assert TablePreprocessor().fit(pd.DataFrame({"version": versions})).categorical_ == ["version"]


@pytest.mark.parametrize(("cell", "refused"), [("12.500", True), ("12.50", False), ("0.500", False)])
def test_points_between_thousands_beside_decimal_commas(tmp_path, cell, refused):
    path = tmp_path / "t.csv"
    path.write_text(f"amount;rate;class\n1.234;3,5;a\n900;2,25;b\n{cell};1,5;\n")
    if refused:
        with pytest.raises(
            ValueError, match="'amount' has numbers like 1.234: write 1234 if the point marks thousands"
        ):
            read_table(path)
    else:
        assert read_table(path)["amount"].iloc[0] == 1.234


def test_scikit_learn_set_to_pandas(problem):
    with sklearn.config_context(transform_output="pandas"):
        assert discover(problem.X, problem.y, method="ncd_kmeans", n_clusters=3, verbose=False).n_clusters == 3


def test_few_unlabelled_rows_stay_in_a_sample():
    problem = make_ncd_blobs(n_samples=2_000, random_state=0)
    kept = np.r_[np.flatnonzero(problem.y != -1), np.flatnonzero(problem.y == -1)[::20]]
    X, y = problem.X[kept], problem.y[kept]
    n_unlabeled = int(np.sum(y == -1))
    found = discover(X, y, method="ncd_kmeans", n_clusters=3, n_seeds=1, max_rows=200, verbose=False)
    assert np.sum(found.model.labels_ != -1) >= min(n_unlabeled, 100)
    told = f"with {np.sum(found.model.labels_ != -1)} of the {n_unlabeled} unlabelled ones"
    assert any(told in note for note in found.notes)


def test_notes_on_what_an_option_did_not_do(problem, tmp_path):
    store = tmp_path / "search.csv"
    found = discover(problem.X, problem.y, method="ncd_kmeans", n_seeds=1, store=store, verbose=False)
    assert f"There was no search, and nothing to store in {store}." in found.notes and not store.exists()
    many = np.repeat(np.arange(36), 6)
    X = np.column_stack([many // 6, many % 6]) * 10.0 + np.random.default_rng(0).normal(size=(216, 2)) / 10
    found = discover(np.r_[X, X[:12] + 100], [-1] * 216 + [0, 1] * 6, method="ncd_kmeans", n_seeds=1, verbose=False)
    assert "The estimate, 30 classes, is the largest number that was tried: there may be more." in found.notes


def test_known_classes_of_few_rows_are_told_of(problem):
    y = np.where(problem.y == problem.known_classes[0], -1, problem.y)
    y[np.flatnonzero(problem.y == problem.known_classes[0])[:2]] = problem.known_classes[0]
    options = {"n_trials": 1, "n_clusters": 4, "n_seeds": 1, "verbose": False}
    found = discover(problem.X, y, method=PBN(epochs=2, verbose=False), **options)
    name = problem.known_classes[0]
    assert f"Known classes of fewer than 5 rows tell the search little where it hides them: {name}." in found.notes


def test_an_estimator_keeps_the_number_it_was_given(problem):
    options = {"n_seeds": 1, "verbose": False}
    assert discover(problem.X, problem.y, method=NCDKMeans(5), **options).model.n_clusters_ == 5
    assert discover(problem.X, problem.y, method=NCDKMeans(), **options).model.n_clusters_ == 3


@pytest.mark.parametrize("n_clusters", ["silhouete", 10_000, 0])
def test_a_wrong_number_is_refused_before_the_search(problem, tmp_path, n_clusters):
    store = tmp_path / "search.csv"
    with pytest.raises(ValueError, match="unknown validity index|n_clusters"):
        discover(problem.X, problem.y, n_clusters=n_clusters, n_trials=1, store=store, verbose=False)
    assert not store.exists()
