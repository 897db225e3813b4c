import os
import subprocess
import sys
from pathlib import Path

import pytest

import ncdlib
from ncdlib.cli import main


@pytest.fixture(autouse=True)
def empty_cache_and_no_network(tmp_path, monkeypatch):
    monkeypatch.setenv("NCDLIB_CACHE", str(tmp_path))
    monkeypatch.setenv("NCDLIB_UCI_URL", "http://127.0.0.1:9")


@pytest.fixture
def ncd(monkeypatch, capsys):
    """Call what the command `ncd` calls; return its exit code, or message, and what it printed."""

    def run(*arguments, data=""):
        monkeypatch.setenv("NCDLIB_DATA", str(data))
        monkeypatch.setattr(sys, "argv", ["ncd", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr().out

    return run


def installed_ncd(*arguments):
    return subprocess.run(
        [Path(sys.executable).with_name("ncd"), *arguments],
        env=os.environ | {"NCDLIB_DATA": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_version():
    result = installed_ncd("--version")
    assert (result.returncode, result.stdout) == (0, f"ncdlib {ncdlib.__version__}\n")


QUICK_ANSWER = """
import sys
from ncdlib.cli import main
try:
    main()
finally:
    print("imported:", *{"numpy", "pandas", "sklearn", "torch"} & set(sys.modules))
"""


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["discover", "--help"]])
def test_help_and_version_do_not_wait_for_the_libraries(arguments):
    """Which take seconds to import."""
    command = [sys.executable, "-c", QUICK_ANSWER, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    answer, _, imported = done.stdout.partition("imported:")
    assert answer and imported == "\n"


def test_names_are_imported_when_they_are_asked_for():
    code = "import ncdlib; from ncdlib import *; print(*sorted(n for n in dir() if n in ncdlib.__all__))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == sorted(ncdlib.__all__)
    assert set(ncdlib.__all__) <= set(dir(ncdlib))
    assert callable(ncdlib.discover)  # no module of that name hides it
    with pytest.raises(AttributeError, match="ncdlib.* attribute '?magic"):
        _ = ncdlib.magic


def test_an_error_is_one_line_with_an_exit_code():
    result = installed_ncd("data", "cnae9", "--download")
    start, error = result.stderr.splitlines()
    assert result.returncode == 1
    assert start == "Downloading data set cnae9 from http://127.0.0.1:9/233/cnae+9.zip"
    assert error.startswith("ncd: data set cnae9: there is no CNAE-9.data on this computer")


def test_help_lists_the_commands(ncd):
    code, out = ncd("--help")
    assert code == 0 and " data " in out


def test_data_lists_every_set_and_how_to_get_what_is_missing(ncd, tmp_path):
    code, out = ncd("data")
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines() if line[0] != " "] == list(ncdlib.DATASETS)
    how = "to get what is missing (361.3 MB unpacked): ncd data census --download"
    assert f"  USCensus1990.data.txt  missing\n  {how}\n" in out
    assert f"http://127.0.0.1:9/116/us+census+data+1990.zip into {tmp_path / 'census'}" in out
    size = ncdlib.DATASETS["letter"].on_board.size
    assert f"letter: Letter Recognition\n  on board ({size:,} bytes), no file is needed\n" in out


def test_data_shows_the_cards_of_what_is_named(ncd):
    for name in ("nslkdd-mixed", "digits"):
        _, out = ncd("data", name)
        assert out.startswith(f"{ncdlib.DATASETS[name]}\n") and out.endswith("no file is needed\n")
    assert "licence: CC BY 4.0" in out and "doi: 10.24432/C50P49" in out


def test_download_of_all_sets_leaves_out_those_on_board(ncd):
    error, out = ncd("data", "--download")
    assert error.startswith("ncd: data set human: there is no train/X_train.txt")
    assert ncd("data", "letter", "steel", "--download")[0].startswith("ncd: data set letter: there is no letter-")
    assert ncd("data", "steel", "--download")[1].endswith("no file is needed\n")  # there is nothing to download


@pytest.mark.needs_files("human", "letter")
def test_data_tells_where_files_are_and_whether_they_are_the_original(ncd):
    home = Path(os.environ["NCDLIB_DATA"])
    _, out = ncd("data", "letter", "human", data=home)
    assert f"  letter-recognition.data  {home}/letter/letter-recognition.data: original\n" in out
    assert f"{home}/human/train/X_train.txt: rebuilt data" in out
    assert "missing" not in out


def test_data_tells_of_a_file_that_is_not_the_original(ncd, tmp_path):
    (tmp_path / "letter").mkdir()
    (tmp_path / "letter" / "letter-recognition.data").write_text("T,1\n")
    state = f"  letter-recognition.data  {tmp_path}/letter/letter-recognition.data: NOT THE ORIGINAL\n"
    assert f"  on board, but these files are used:\n{state}" in ncd("data", "letter")[1]


def test_data_tells_how_to_complete_files_that_no_archive_has(ncd, tmp_path):
    (tmp_path / "nslkdd").mkdir()
    (tmp_path / "nslkdd" / "KDDTest+.txt").write_text("0,tcp\n")
    assert f"  put all of these files into {tmp_path / 'nslkdd'}\n" in ncd("data", "nslkdd")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "mnist"], "ncd: there is no data set 'mnist'; choose one of human, letter"),
        (["data", "--data-home", "/nowhere"], "ncd: there is no folder /nowhere, which data_home names"),
    ],
)
def test_wrong_arguments(ncd, arguments, message):
    error, _ = ncd(*arguments)
    assert error.startswith(message) and "\n" not in error


def test_bench_measures_one_group(tmp_path):
    """It replaces what was measured of that group before, under whatever name, and keeps the rest."""
    script, path = Path(__file__).parents[1] / "benchmarks" / "run.py", tmp_path / "results.csv"
    columns = "name,median,low,high,unit,target,at_most,note,group,met,machine,date,ncdlib"
    path.write_text(f"{columns}\nan old name,1,1,1,x faster,1,False,,kmeans,yes,\npeak,1,1,1,GB,2,True,,memory,yes,\n")
    command = [sys.executable, script, "--quick", "--only", "kmeans", "-o", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "NCD k-means against k-means" in done.stdout and "1 measurements" in done.stdout
    header, *rows = path.read_text().splitlines()
    assert header == columns
    assert [row.split(",")[0] for row in rows] == ["peak", "NCD k-means against k-means"]


@pytest.mark.parametrize("command", [["reproduce"], ["discover", "mine.csv", "--label-column", "class"]])
def test_no_processes_are_refused(monkeypatch, capsys, command):
    monkeypatch.setattr(sys, "argv", ["ncd", *command, "--jobs", "0"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2 and "--jobs 0 would do nothing" in capsys.readouterr().err
