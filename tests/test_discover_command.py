"""The command line `ncd discover`: what it prints, writes and refuses, and how it is stopped."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from own_tables import run_discover, write_csv
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

from ncdlib import make_ncd_blobs
from ncdlib.cli import app
from ncdlib.own_data.result import RESULT_COLUMNS


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=0)


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
    first, note, chosen, header, *classes, last = done.stdout.splitlines()
    counts = ", ".join(f"{c} ({np.sum(problem.y == c)})" for c in problem.known_classes)
    assert first == f"{np.sum(problem.y == -1)} unlabelled rows; known classes: {counts}"
    assert note.startswith("note: NCDKMeans needs no search")
    assert chosen == "chosen: 3 novel classes (the silhouette index is best for this number); NCDKMeans"
    assert "nearest known" in header and "confidence" not in header  # which only the default method tells
    assert last == "3 classes; stability over seeds 1.00"
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
    arguments += ["--method", "pbn"]
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
    command += ["--method", "pbn", "--jobs", "2", "--store", store, "--clusters", "3", "--trials"]
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
        [*command, "--method", "pbn", "--trials", "500"],
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
    assert read[0] == header + ";ncd_label;ncd_discovered;ncd_p_known;ncd_confidence;ncd_runner_up"
    assert [line.rsplit(";", 5)[0] for line in read[1:]] == rows
    assert {line.rsplit(";", 5)[1][:3] for line in read[21:]} == {"new"}
    assert output.read_bytes().startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")


def test_the_table_is_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("ncdlib.own_data.read.ROWS_AT_ONCE", 7)
    rows = [f"{i},{i % 4},{'ab'[i % 2] if i < 20 else ''}" for i in range(30)]
    done = run_on(tmp_path, "\n".join(["x,y,class", *rows]).encode(), "-o", str(tmp_path / "out.csv"))
    assert done.exit_code == 0, done.output
    read = (tmp_path / "out.csv").read_text().splitlines()
    assert [line.rsplit(",", len(RESULT_COLUMNS))[0] for line in read[1:]] == rows


def test_the_index_of_a_parquet_file_stays_in_a_csv(csv_file, tmp_path):
    table = pd.read_csv(csv_file)
    table.set_index("row " + table.index.astype(str)).to_parquet(tmp_path / "t.parquet")
    command = ["discover", str(tmp_path / "t.parquet"), "--label-column", "class", "--method", "ncd_kmeans"]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    assert pd.read_csv(tmp_path / "out.csv", index_col=0).index[-1] == f"row {len(table) - 1}"


def test_a_result_is_not_learned_from_again(tmp_path):
    path, first, second = (tmp_path / name for name in ("t.csv", "first.csv", "second.csv"))
    assert run_discover(write_csv(path), "-o", first).exit_code == 0
    again = run_discover(first, "-o", second)
    assert "has a column 'ncd_label'" in str(again.exception)
    columns = RESULT_COLUMNS
    dropped = run_discover(first, "-o", second, *(word for name in columns for word in ("--drop", name)))
    assert dropped.exit_code == 0, dropped.output
    assert second.read_text() == first.read_text()


def test_rows_of_one_name_stay_single(tmp_path):
    path, output = tmp_path / "t.parquet", tmp_path / "labels.parquet"
    table = pd.read_csv(write_csv(tmp_path / "t.csv"))
    table.index = [0] * len(table)
    table.to_parquet(path)
    done = run_discover(path, "-o", output)
    assert done.exit_code == 0, done.output
    assert len(pd.read_parquet(output)) == len(table)


# The kernel's high-water mark of this program alone: ru_maxrss would begin at that of the process that started it.
LONG_FILE = """
import sys
from ncdlib.cli import app
command = ["discover", sys.argv[1], "--label-column", "class", "--method", "ncd_kmeans", "-o", sys.argv[2]]
app(command, standalone_mode=False)
print("peak", 1024 * int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]))
"""


@pytest.mark.parametrize(
    "n_bytes",
    [1e7, pytest.param(1e9, marks=pytest.mark.skipif(not os.environ.get("NCDLIB_LONG"), reason="NCDLIB_LONG=1"))],
)
def test_a_long_file(tmp_path, n_bytes):
    """Memory is a small multiple of the file, on top of what the libraries take."""
    path = write_csv(tmp_path / "t.csv", n_rows=60_000)
    header, _, body = path.read_bytes().partition(b"\n")
    with path.open("ab") as file:
        for _ in range(int(n_bytes / len(body))):
            file.write(body)
    done = subprocess.run(
        [sys.executable, "-c", LONG_FILE, path, tmp_path / "labels.csv"], capture_output=True, text=True, timeout=1_800
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "Learned from a random sample of 50,000 of the" in done.stdout and "2 classes" in done.stdout
    peak = float(done.stdout.split("peak")[1])
    assert peak < 7e8 + 12 * path.stat().st_size, peak


def labels_of(path):
    return pd.read_csv(path)["ncd_label"]


def test_a_word_that_stands_for_a_missing_label(tmp_path):
    path, output = write_csv(tmp_path / "t.csv"), tmp_path / "out.csv"
    table = pd.read_csv(path).fillna({"class": "unknown"})
    table.to_csv(path, index=False)
    done = run_discover(path, "--label-missing", "unknown", "--no-mixed", "-o", output)
    assert done.exit_code == 0, done.output
    assert set(labels_of(output)[table["class"] == "unknown"]) == {"new 1", "new 2"}
    absent = run_discover(path, "--label-missing", "unkown")
    assert "has no label 'unkown' to take as missing" in str(absent.exception)


def test_index_and_largest_number_of_classes(tmp_path):
    path = write_csv(tmp_path / "t.csv", n_rows=300)
    done = run_discover(path, "--index", "davies_bouldin", "--k-max", "2")
    assert done.exit_code == 0, done.output
    assert "2 classes" in done.output and "is the largest number that was tried" in done.output
    assert "unknown validity index 'silly'" in str(run_discover(path, "--index", "silly").exception)


def test_keep_takes_a_column_as_it_is(tmp_path):
    path = write_csv(tmp_path / "t.csv", n_rows=120)
    pd.read_csv(path).assign(id=np.random.default_rng(0).permutation(10_000)[:120]).to_csv(path, index=False)
    assert "The column 'id' was left out" in run_discover(path).output
    assert "'id'" not in run_discover(path, "--keep", "id").output
    assert "has no column 'idn': did you mean 'id'?" in str(run_discover(path, "--keep", "idn").exception)


def test_ctrl_c_before_anything_is_stored_does_not_promise_to_go_on(tmp_path):
    from ncdlib.cli import _how_to_go_on

    store = tmp_path / "search.csv"
    assert _how_to_go_on(store) == "nothing was finished yet: the same command starts again"
    store.touch()
    assert _how_to_go_on(store) == "the same command goes on where the search was"
