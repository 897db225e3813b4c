"""Next week: a result is saved, read in another process, and labels new rows, whatever the file and its size."""

import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from own_tables import EVIL, odd_table, write_csv
from typer.testing import CliRunner

from ncdlib import PBN, NCDKMeans, discover, load, make_ncd_blobs
from ncdlib.cli import app
from ncdlib.own_data import apply_file as module
from ncdlib.own_data.apply import NEITHER
from ncdlib.own_data.apply_file import ADDED, apply_file
from ncdlib.own_data.read import read_table

NCD = Path(sys.executable).with_name("ncd")


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=0)


@pytest.fixture(scope="module")
def found(problem):
    return discover(*odd_table(problem), method="ncd_kmeans", verbose=False)


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A table, and what was saved of its discovery."""
    folder = tmp_path_factory.mktemp("mine")
    table = write_csv(folder / "mine.csv", n_rows=600)
    arguments = ["discover", table, "--label-column", "class", "--method", "ncd_kmeans", "--save", folder / "r.npz"]
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return table, folder / "r.npz"


def ncd(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def new_rows(n_rows, seed, centers=((0, 0), (9, 9), (0, 9), (9, 0))):
    """Rows as in `write_csv`, of the four classes in turn."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(np.resize(centers, (n_rows, 2)) + rng.normal(size=(n_rows, 2)), columns=["x", "y"])


ANOTHER_PROCESS = """
import sys, pandas as pd, ncdlib
found = ncdlib.load(sys.argv[1])
found.apply(pd.read_parquet(sys.argv[2])).to_parquet(sys.argv[3])
"""


def test_another_process_gives_the_same_labels_bit_for_bit(problem, found, tmp_path):
    X, _ = odd_table(problem)
    new = X.sample(300, random_state=1)
    new["x0"] += 0.1
    new.to_parquet(tmp_path / "new.parquet")
    found.save(tmp_path / "r.npz")
    command = [sys.executable, "-c", ANOTHER_PROCESS, tmp_path / "r.npz", tmp_path / "new.parquet", tmp_path / "out"]
    subprocess.run(command, check=True, timeout=300)
    here = found.apply(pd.read_parquet(tmp_path / "new.parquet"))
    there = pd.read_parquet(tmp_path / "out")
    assert here["label"].tolist() == there["label"].tolist()
    assert here["confidence"].to_numpy().tobytes() == there["confidence"].to_numpy().tobytes()
    assert here["label"].nunique() > 5 and (here["label"] != NEITHER).mean() > 0.9


def test_all_of_a_result_is_saved(problem, tmp_path):
    options = {"n_trials": 1, "n_seeds": 2, "verbose": False}
    for method, index in ((PBN(epochs=2), None), ("metric", pd.Index(np.arange(len(problem.X)) * 3, name="id"))):
        X = pd.DataFrame(problem.X, index=index)
        found = discover(X, problem.y, method=method, n_clusters=3, **options)
        again = load(found.save(tmp_path / "r.npz"))
        pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())
        pd.testing.assert_frame_equal(again.summary(), found.summary())
        bare = [[replace(p, confidence=0.0) for p in result.profiles] for result in (again, found)]  # NaN is not NaN
        assert bare[0] == bare[1] and again.notes == found.notes
        assert (again.predict(X) == found.predict(X)).all()
        assert (
            (again.estimate is None) == (found.estimate is None) == (method == "metric")
        )  # told three, it counts none
        if found.estimate is not None:
            assert again.estimate.scores.keys() == found.estimate.scores.keys()
        assert again.known.tolist() == found.known.tolist()
        pages = [result.report(tmp_path / "page.html").read_text() for result in (found, again)]
        assert pages[0] == pages[1]
        assert (again.search is None) == (found.search is None)
    assert os.listdir(tmp_path) != []


def test_what_cannot_be_saved_is_refused(problem, tmp_path):
    class Mine(NCDKMeans):
        pass

    found = discover(problem.X, problem.y, method=Mine(3), verbose=False)
    with pytest.raises(TypeError, match="cannot save Mine"):
        found.save(tmp_path / "r.npz")
    dates = pd.date_range("2026-01-01", periods=len(problem.X))
    found = discover(pd.DataFrame(problem.X, index=dates), problem.y, method="ncd_kmeans", verbose=False)
    with pytest.raises(TypeError, match="not named by text or numbers"):
        found.save(tmp_path / "r.npz")
    assert os.listdir(tmp_path) == []


def test_new_rows_are_known_discovered_or_neither(mine):
    found = load(mine[1])
    new = new_rows(400, 1)
    labels = found.apply(new)
    truth = np.resize(["a", "b", *labels["label"][[2, 3]]], 400)
    right = labels["label"] == truth
    assert right.mean() > 0.96 and set(truth) == {"a", "b", "new 1", "new 2"}
    assert (labels["discovered"] == labels["label"].str.startswith("new")).all()
    strange = found.apply(new_rows(200, 2, [(4.5, 4.5), (30, -30)]))
    assert (strange["label"] == NEITHER).mean() > 0.95 and not strange["discovered"].any()
    assert (strange["confidence"] > 0.98).mean() > 0.9


def test_confidence_is_the_share_of_right_answers():
    """Classes that overlap: of new rows with a confidence of about c, about c are right."""
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0], [2, 0], [0, 2], [2, 2]])
    truth = rng.integers(0, 4, 6000)
    X = centers[truth] + rng.normal(size=(6000, 2))
    y = np.where(truth < 2, truth, -1)
    found = discover(X[:3000], y[:3000], method="ncd_kmeans", n_clusters=2, unlabeled="new", verbose=False)
    new = found.apply(X[3000:])
    # The truth of a discovery is what its own rule would say, here of k-means; of known rows their class.
    expected = np.where(truth[3000:] < 2, truth[3000:].astype(str), "")
    names = np.array([profile.name for profile in found.profiles])
    expected = np.where(expected == "", names[found.predict(X[3000:])], expected)
    judged = new["label"] != NEITHER
    right = (new["label"] == expected)[judged]
    confidence = new["confidence"][judged]
    sure = confidence > confidence.median()
    for half in (sure, ~sure):
        assert abs(right[half].mean() - confidence[half].mean()) < 0.05
    assert confidence[sure].mean() - confidence[~sure].mean() > 0.1


def test_the_share_turned_away_is_what_was_asked_for(mine):
    found = load(mine[1])
    shares = [(found.apply(new_rows(2000, seed), reject=0.05)["label"] == NEITHER).mean() for seed in range(5)]
    assert 0.03 < np.mean(shares) < 0.07
    assert (found.apply(new_rows(2000, 9), reject=0)["label"] == NEITHER).mean() < 0.005
    with pytest.raises(ValueError, match=r"reject must be a number in \[0, 1\), got 1"):
        found.apply(new_rows(5, 0), reject=1)


def test_drift_is_told_of_and_seldom_where_there_is_none(mine):
    found = load(mine[1])
    drift = [any("fit worse" in n for n in found.apply(new_rows(300, seed)).attrs["notes"]) for seed in range(40)]
    assert sum(drift) <= 3
    shifted = new_rows(300, 1) + [0.6, -0.6]
    assert any("fit worse" in note for note in found.apply(shifted).attrs["notes"])
    one_class = found.apply(new_rows(300, 1, [(0, 0)]))  # more rows of one class are no drift
    assert not one_class.attrs["notes"], one_class.attrs
    grown = pd.concat([new_rows(300, 1), new_rows(30, 2, [(4.5, 4.5)])])
    assert any("% are neither" in note for note in found.apply(grown).attrs["notes"])


def test_cells_stay_as_they_are_and_pieces_do_not_matter(mine, tmp_path, monkeypatch):
    """Hostile names and cells are text; a cell keeps its digits; one row at a time or all, labels are the same."""
    rows = new_rows(57, 3)
    path = tmp_path / "day.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["y", EVIL, "x", "=cmd()", '  a, "b"\nc'])
        for i, (x, y) in enumerate(rows.to_numpy()):
            writer.writerow([f"{y:.3f}0", EVIL, f"{x:+.3f}", "007", f'line\n{i}, "quoted"'])
    found = load(mine[1])
    outputs = []
    for at_once in (1000, 10, 1):
        monkeypatch.setattr(module, "MAX_ROWS_AT_ONCE", at_once)
        applied = apply_file(found, path, tmp_path / f"{at_once}.csv", verbose=False)
        outputs.append((tmp_path / f"{at_once}.csv").read_bytes())
        assert applied.n_rows == 57 and sum(applied.sizes.values()) == 57
    assert outputs[0] == outputs[1] == outputs[2]
    with path.open(newline="") as old, (tmp_path / "10.csv").open(newline="") as new:
        old, new = list(csv.reader(old)), list(csv.reader(new))
    assert old == [line[:5] for line in new]
    assert new[0][5:] == list(ADDED)
    whole = found.apply(read_table(path))
    assert [line[5] for line in new[1:]] == whole["label"].tolist()


def test_semicolons_and_decimal_commas(mine, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS_AT_ONCE", 7)
    rows = new_rows(50, 4).round(2)
    rows.to_csv(tmp_path / "comma.csv", index=False)
    rows.to_csv(tmp_path / "semicolon.csv", index=False, sep=";", decimal=",")
    found = load(mine[1])
    labels = []
    for name, options in (("comma", {}), ("semicolon", {"sep": ";"})):
        apply_file(found, tmp_path / f"{name}.csv", tmp_path / "out.csv", verbose=False)
        labels.append(pd.read_csv(tmp_path / "out.csv", **options)["ncd_label"].tolist())
    assert labels[0] == labels[1]


def test_codes_stay_codes_in_a_piece_that_has_no_others(tmp_path, monkeypatch):
    """01 is no 1: a piece of a column of categories may look like numbers."""
    rng = np.random.default_rng(0)
    kind = np.repeat(["01", "02", "x"], 100)
    X = pd.DataFrame({"kind": kind, "size": rng.normal(size=300)})
    found = discover(
        X,
        np.where(kind == "x", "b", np.where(kind == "02", "a", None)),
        method="ncd_kmeans",
        n_clusters=1,
        unlabeled="new",
        keep=["kind"],
        verbose=False,
    )
    X.to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.setattr(module, "MAX_ROWS_AT_ONCE", 50)
    applied = apply_file(found, tmp_path / "new.csv", tmp_path / "out.csv", verbose=False)
    assert applied.notes == [] and applied.sizes["a"] > 90 and applied.sizes["new 1"] > 90, applied


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x,Y\n1,2\n", "new.csv has no column 'y': it has x, Y"),
        (b"a,b\n1,2\n", "new.csv has no columns 'x', 'y': it has a, b"),
        (b"x,y,ncd_label\n1,2,a\n", "has a column 'ncd_label', as a result has: rename it"),
        (b"x,y\n1,2\n3,many\n", "column 'y' holds something else than numbers .*'many'.*: give numbers"),
        (b"x,y\n1,2020-01-01\n", "column 'y' holds something else than numbers"),
        (b"x,y\n1,inf\n", "column 'y' has infinite values"),
        (b"x,y\n", "has no rows"),
        (b"x,y\n1,2,3\n4,5,6\n", "its rows have more fields than its header"),
        (b"x,y\n1,2\n3,4,5,6\n", "is not a table that can be read"),
        (b"x,x,y\n1,2,3\n", "has two columns 'x': rename one"),
        (None, "there is no file"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(mine, tmp_path, content, message):
    path, output = tmp_path / "new.csv", tmp_path / "out.csv"
    if content is not None:
        path.write_bytes(content)
    output.write_text("of yesterday")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        apply_file(load(mine[1]), path, output, verbose=False)
    assert output.read_text() == "of yesterday" and not list(tmp_path.glob(".*"))


def test_a_separator_at_the_end_of_each_row_does_no_harm(mine, tmp_path):
    (tmp_path / "new.csv").write_text("x,y\n0,0,\n9,9,\n")
    apply_file(load(mine[1]), tmp_path / "new.csv", tmp_path / "out.csv", verbose=False)
    assert pd.read_csv(tmp_path / "out.csv")["ncd_label"].tolist() == ["a", "b"]


def test_unseen_categories_and_other_columns_are_told_of(problem, found, tmp_path):
    X, _ = odd_table(problem)
    X.loc[X.index[:5], "colour"] = None
    X["colour"] = X["colour"].astype(object)
    X.loc[X.index[5:12], "colour"] = "purple"
    X["extra"] = 1
    X.to_csv(tmp_path / "new.csv", index=False)
    applied = apply_file(found, tmp_path / "new.csv", tmp_path / "out.csv", verbose=False)
    told = "\n".join(applied.notes)
    assert "The column 'colour' has values that it did not have before: 'purple' (7 rows)." in told
    assert "Not learned from, and kept as they are: same, nothing, extra." in told
    assert applied.notes[1:] == found.apply(X).attrs["notes"]


def test_parquet_file_and_folder(mine, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS_AT_ONCE", 16)
    found, rows = load(mine[1]), new_rows(100, 5)
    rows["day"] = pd.date_range("2026-01-01", periods=100)
    rows["month"] = ["jan", "feb"] * 50
    rows.to_parquet(tmp_path / "one.parquet")
    rows.to_parquet(tmp_path / "many", partition_cols=["month"])
    expected = found.apply(rows)["label"]
    for output in ("out.parquet", "out.csv"):
        apply_file(found, tmp_path / "one.parquet", tmp_path / output, verbose=False)
        read = pd.read_parquet if output.endswith("t") else pd.read_csv
        labelled = read(tmp_path / output)
        assert labelled["ncd_label"].tolist() == expected.tolist()
        assert list(labelled.columns) == [*rows.columns, *ADDED]
    apply_file(found, tmp_path / "many", tmp_path / "out.parquet", verbose=False)
    labelled = pd.read_parquet(tmp_path / "out.parquet").sort_values("day")
    assert labelled["ncd_label"].tolist() == expected.tolist()
    assert labelled["month"].tolist() == rows["month"].tolist()
    rows.drop(columns=["y", "month"]).to_parquet(tmp_path / "many" / "late.parquet")
    with pytest.raises(ValueError, match=r"late.parquet has no column 'y'"):
        apply_file(found, tmp_path / "many", tmp_path / "out.parquet", verbose=False)
    with pytest.raises(ValueError, match="would be read as a part of it"):
        apply_file(found, tmp_path / "many", tmp_path / "many" / "out.parquet", verbose=False)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no Parquet file"):
        apply_file(found, tmp_path / "empty", tmp_path / "out.parquet", verbose=False)
    (tmp_path / "bad.parquet").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match="is not Parquet that can be read"):
        apply_file(found, tmp_path / "bad.parquet", tmp_path / "out.parquet", verbose=False)


def test_command_line(mine, tmp_path):
    table, result = mine
    new_rows(100, 6).to_csv(tmp_path / "new.csv", index=False)
    done = ncd("apply", result, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert done.exit_code == 0 and "100 rows: " in done.output, done.output
    assert pd.read_csv(tmp_path / "out.csv")["ncd_label"].isin(["a", "b", "new 1", "new 2", NEITHER]).all()
    assert "is named twice" in str(ncd("apply", result, table, "-o", table).exception)
    assert "is named twice" in str(ncd("apply", result, table, "-o", result).exception)
    NCDKMeans(2).fit([[0.0], [1], [2], [3], [4]], [0, 1, -1, -1, -1]).save(tmp_path / "model.npz")
    refused = ncd("apply", tmp_path / "model.npz", table, "-o", tmp_path / "out.csv")
    assert "is a saved NCDKMeans: give the result that ncd discover --save wrote" in str(refused.exception)
    assert "is written as CSV" in str(ncd("apply", result, table, "-o", tmp_path / "out.parquet").exception)


def test_kill_9_leaves_no_half_file(mine, tmp_path):
    """The output of yesterday stays, or nothing is there; the same command then works."""
    new_rows(400_000, 7).round(3).to_csv(tmp_path / "new.csv", index=False)
    output = tmp_path / "out.csv"
    for before in (None, "of yesterday"):
        if before:
            output.write_text(before)
        command = [NCD, "apply", mine[1], tmp_path / "new.csv", "-o", output]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while not any(part.stat().st_size > 100_000 for part in tmp_path.glob(".out.csv.*.part")):
            assert process.poll() is None and time.monotonic() < deadline, "it ended before it could be killed"
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert (output.read_text() if output.exists() else None) == before
        for part in tmp_path.glob(".out.csv.*.part"):
            part.unlink()
    new_rows(100, 7).to_csv(tmp_path / "new.csv", index=False)
    assert ncd("apply", mine[1], tmp_path / "new.csv", "-o", output).exit_code == 0
    assert len(pd.read_csv(output)) == 100


def test_a_dask_cluster_gives_the_same_file(mine, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    import dask.dataframe as dd

    monkeypatch.setattr(module, "MAX_ROWS_AT_ONCE", 50)
    rows = new_rows(1_000, 8)
    rows.to_csv(tmp_path / "new.csv", index=False)
    found = load(mine[1])
    here = apply_file(found, tmp_path / "new.csv", tmp_path / "here.csv", verbose=False)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": 0}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        with distributed.get_task_stream() as tasks:
            done = ncd(
                "apply",
                mine[1],
                tmp_path / "new.csv",
                "-o",
                tmp_path / "there.csv",
                "--dask",
                cluster.scheduler_address,
            )
        assert done.exit_code == 0, done.output
        assert len({task["worker"] for task in tasks.data}) == 2  # both processes took part
        lazily = found.apply(dd.from_pandas(rows, npartitions=3))
        pd.testing.assert_frame_equal(lazily.compute(), found.apply(rows), check_dtype=False)
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()
    assert f"{here.n_rows:,}".replace(",", "") in done.output


def peak_memory(result, table, output):
    """Run `ncd apply`; return its largest memory in MB, and the seconds it took."""
    script = (
        "import resource, subprocess, sys, time; start = time.time(); "
        "subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, time.time() - start)"
    )
    command = [sys.executable, "-c", script, NCD, "apply", result, table, "-o", output]
    return map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def many_rows(path, n_rows):
    with path.open("w") as file:
        for i in range(0, n_rows, 100_000):
            rows = new_rows(min(100_000, n_rows - i), i)
            rows["text"] = "some words, and more"
            rows.round(4).to_csv(file, index=False, header=i == 0)


@pytest.mark.skipif(not os.environ.get("NCDLIB_LONG"), reason="ten million rows take minutes: NCDLIB_LONG=1")
def test_ten_million_rows_in_bounded_memory(mine, tmp_path):
    n_rows = int(os.environ.get("NCDLIB_LONG_ROWS", 10_000_000))
    many_rows(tmp_path / "piece.csv", 100_000)
    many_rows(tmp_path / "all.csv", n_rows)
    one, _ = peak_memory(mine[1], tmp_path / "piece.csv", tmp_path / "out.csv")
    all_of_them, seconds = peak_memory(mine[1], tmp_path / "all.csv", tmp_path / "out.csv")
    print(f"{n_rows:,} rows: {all_of_them:.0f} MB ({one:.0f} MB for 100,000), {seconds:.0f} s")
    assert all_of_them < one + 300
    assert sum(1 for _ in (tmp_path / "out.csv").open()) == n_rows + 1
