"""The data sets that come with the package: the same numbers as in the files, for everybody."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ncdlib import DATASETS, load_dataset, load_table
from ncdlib.datasets import DataFileError, get_files, is_here, on_board, uses_board
from ncdlib.datasets.pack import main, pack, write
from ncdlib.datasets.readers import NSLKDD

ON_BOARD = [name for name, info in DATASETS.items() if info.on_board]
PACKED = [name for name in ON_BOARD if DATASETS[name].on_board.name == f"{name}.npz"]  # not the variants of another one
PAPERS = ["letter", "pendigits", "mfeat", "optdigits", "cnae9"]


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """No folder with data files."""
    monkeypatch.delenv("NCDLIB_DATA", raising=False)
    monkeypatch.setenv("NCDLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NCDLIB_UCI_URL", "http://127.0.0.1:9")


# The arrays.


def test_what_is_on_board():
    assert PACKED == [*PAPERS, "steel", "nslkdd", "vowel", "vehicle", "segment"]
    assert set(ON_BOARD) - set(PACKED) == {"steel-other", "nslkdd-mixed"}
    assert {path.name for path in on_board.FOLDER.iterdir()} == {DATASETS[name].on_board.name for name in PACKED}


@pytest.mark.parametrize("name", PACKED)
def test_arrays_on_board_are_those_recorded(name):
    file = DATASETS[name].on_board
    content = (on_board.FOLDER / file.name).read_bytes()
    assert (len(content), sha256(content).hexdigest()) == (file.size, file.sha256)
    assert len(content) < 2_000_000
    with np.load(on_board.FOLDER / file.name, allow_pickle=False) as stored:
        for array in stored.values():
            assert array.dtype.kind in "iuU" or (name == "segment" and array.dtype == np.float64)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.needs_files(name)) for name in PACKED])
def test_arrays_on_board_equal_the_files_to_the_last_bit(name):
    info = DATASETS[name]
    read, stored = info.read(get_files(info, download=False)), on_board.load(info.on_board)
    assert read.keys() == stored.keys()
    for key, array in read.items():
        if array.dtype.kind == "f":
            assert stored[key].dtype == np.float64
            assert stored[key].tobytes() == array.tobytes()
        else:
            assert stored[key].dtype.kind == array.dtype.kind and np.array_equal(stored[key], array)


@pytest.mark.needs_files("steel", "vowel", "segment")
@pytest.mark.parametrize(
    ("name", "file", "rows"), [("steel", "steel_plates_faults.csv", 1941), ("segment", None, 2310)]
)
def test_decimals_are_what_python_makes_of_the_text(name, file, rows):
    """Not only what our own reader makes of it."""
    info = DATASETS[name]
    lines = get_files(info)[file or info.files[0].name].read_text().splitlines()[1:]
    expected = np.array([[float(field) for field in line.split(",")[: info.shape[1]]] for line in lines])
    assert len(expected) == rows
    assert on_board.load(info.on_board)["X"].tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.needs_files(*PACKED)
def test_a_problem_is_the_same_from_files_and_from_the_arrays_on_board(name, tmp_path, monkeypatch):
    monkeypatch.setenv("NCDLIB_CACHE", str(tmp_path))
    assert not uses_board(DATASETS[name])
    from_files = load_dataset(name)
    monkeypatch.delenv("NCDLIB_DATA")
    assert uses_board(DATASETS[name])
    from_board = load_dataset(name)
    assert from_files.source == from_board.source == DATASETS[name].source
    for array in ("X", "y", "y_true", "X_test", "y_test"):
        assert getattr(from_files, array).tobytes() == getattr(from_board, array).tobytes()


@pytest.mark.needs_files(*PACKED)
def test_packing_again_gives_what_the_registry_records(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ncdlib.datasets.pack.FOLDER", tmp_path)
    main(PACKED)
    printed = capsys.readouterr().out
    for name in PACKED:
        file = DATASETS[name].on_board
        assert f'DataFile("{name}.npz", {file.size:_}, "{file.sha256}")' in printed


@pytest.mark.parametrize(
    "X",
    [
        np.array([[0.1, 0.2], [0.3, 1e5]]),
        np.array([[0.1 + 0.2, 1 / 3]]),  # no decimal of a few digits
        np.array([[0.0, -0.0]]),
        np.array([[1e300, 5e-324]]),
        np.array([[2.0**53, -(2.0**53)]]),
    ],
    ids=str,
)
def test_whatever_is_packed_comes_back(X):
    packed = pack({"X": X, "y": np.array([-3, 70_000])})
    assert packed["y"].dtype == np.int32
    back = on_board.unpack(packed)
    assert back["X"].tobytes() == X.tobytes() and back["y"].tolist() == [-3, 70_000]


def test_what_would_not_come_back_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="own: y would not come back as it is"):
        write({"y": np.array([2**63], dtype=np.uint64)}, tmp_path / "own.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:99] + b"?" + b[100:], None])
def test_damaged_arrays_are_refused(alone, tmp_path, monkeypatch, damage):
    monkeypatch.setattr(on_board, "FOLDER", tmp_path)
    if damage:
        (tmp_path / "vowel.npz").write_bytes(
            damage(Path(on_board.__file__).with_name("arrays").joinpath("vowel.npz").read_bytes())
        )
    with pytest.raises(DataFileError, match="vowel.npz, a part of the package, .*: install ncdlib again"):
        load_dataset("vowel")


# Where data come from.

OFFLINE = """
import socket, sys
def refuse(*_, **__):
    raise AssertionError("a socket was opened")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from ncdlib.datasets import DATASETS, load_dataset, load_table
for name, info in DATASETS.items():
    if name not in ("human", "census"):
        assert len(load_dataset(name, download=False).X) == len(load_table(name).X), name
        assert str(load_dataset(name).source) == info.source
assert "torch" not in sys.modules
print("all loaded")
"""


def test_all_is_there_with_an_empty_home_and_no_network(tmp_path):
    keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], env=keep | {"HOME": str(tmp_path)}, capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "all loaded\n", done.stderr[-2000:]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]  # nothing is written either


@pytest.mark.parametrize("way", ["argument", "variable", "cache"])
def test_a_file_of_the_user_wins(alone, tmp_path, monkeypatch, way):
    home = tmp_path / ("cache" if way == "cache" else "mine")
    (home / "extra").mkdir(parents=True)
    rows = [f"{row},{'bus opel saab van'.split()[row % 4]}" for row in range(40)]
    (home / "extra" / "vehicle.csv").write_text("\n".join(["weight,Class", *rows]))
    if way == "variable":
        monkeypatch.setenv("NCDLIB_DATA", str(home))
    options = {"data_home": home} if way == "argument" else {}
    with pytest.raises(DataFileError, match="vehicle.csv is not the original .* Remove it to use the arrays on board"):
        load_dataset("vehicle", **options)
    problem = load_dataset("vehicle", allow_modified=True, **options)
    assert problem.feature_names == ["weight"] and len(problem.X) + len(problem.X_test) == 40
    assert problem.source == "modified data: vehicle.csv is not the original"


def test_a_folder_without_this_data_set_leaves_the_arrays_on_board(alone, tmp_path, monkeypatch):
    (tmp_path / "letter").mkdir()
    monkeypatch.setenv("NCDLIB_DATA", str(tmp_path))
    assert load_dataset("letter").source == "original"
    assert load_dataset("letter", data_home=tmp_path, allow_modified=True).source == "original"


def test_half_of_the_files_is_not_silently_ignored(alone, tmp_path):
    (tmp_path / "pendigits").mkdir()
    (tmp_path / "pendigits" / "pendigits.tra").write_text("0,1\n")
    assert not is_here(DATASETS["pendigits"], tmp_path)
    with pytest.raises(DataFileError, match="there is no pendigits.tes on this computer, and download=False"):
        load_dataset("pendigits", data_home=tmp_path, download=False)
    (tmp_path / "nslkdd").mkdir()
    (tmp_path / "nslkdd" / "KDDTest+.txt").write_text("0,1\n")
    with pytest.raises(DataFileError, match=r"no KDDTrain\+_20Percent.txt .* no archive to download has it"):
        load_dataset("nslkdd-mixed", data_home=tmp_path)


def test_a_folder_that_is_not_there_is_an_error(alone, tmp_path):
    with pytest.raises(DataFileError, match="there is no folder .*nowhere, which data_home names"):
        load_dataset("steel", data_home=tmp_path / "nowhere")


# Cards.


@pytest.mark.parametrize("name", DATASETS)
def test_cards(name):
    info, card = DATASETS[name], str(DATASETS[name])
    assert info.about.endswith(".") and info.licence and info.citation in card
    assert re.fullmatch(r"10\.\d+/\S+", info.doi)
    assert info.title and card.startswith(f"{name}: {info.title}\n")
    assert all(info.class_names[code] in card for code in (*info.known_classes, *info.novel_classes))


@pytest.mark.parametrize("name", [*ON_BOARD, pytest.param("human", marks=pytest.mark.needs_data("human"))])
def test_cards_count_rows_and_columns(name, tmp_path, monkeypatch):
    info = DATASETS[name]
    arrays = on_board.load(info.on_board) if info.on_board else info.read(get_files(info))
    n_rows = sum(len(arrays[key]) for key in ("X", "X_test") if key in arrays)
    assert info.shape == (n_rows, arrays["X"].shape[1])


# The problems that are not the paper's.

COUNTS = {  # features; known and novel: classes, train rows, test rows
    "steel": (27, 3, 688, 295, 3, 199, 86),
    "steel-other": (27, 3, 688, 295, 4, 670, 288),
    "nslkdd": (118, 10, 11_703, 2_052, 8, 2_570, 1_102),
    "nslkdd-mixed": (118, 11, 25_152, 4_965, 8, 2_570, 1_102),
    "vowel": (9, 6, 378, 162, 5, 315, 135),
    "vehicle": (18, 2, 305, 130, 2, 287, 124),
    "segment": (18, 4, 924, 396, 3, 693, 297),
}
NOVEL = {
    "steel": "Pastry Stains Dirtiness",
    "steel-other": "Pastry Stains Dirtiness Other_Faults",
    "nslkdd": "mscan apache2 processtable snmpguess saint mailbomb snmpgetattack httptunnel",
    "nslkdd-mixed": "mscan apache2 processtable snmpguess saint mailbomb snmpgetattack httptunnel",
    "vowel": "hEd hOd hYd hed hod",
    "vehicle": "opel van",
    "segment": "cement grass sky",
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(alone, name):
    problem = load_dataset(name)
    count = problem.describe()
    kinds = [f"{kind} {what}" for kind in ("known", "novel") for what in ("classes", "rows", "test rows")]
    assert (count["features"], *count[kinds]) == COUNTS[name]
    assert {problem.class_names[code] for code in problem.novel_classes} == set(NOVEL[name].split())
    assert set(problem.y) == {-1, *problem.known_classes}
    assert np.allclose(problem.X.mean(axis=0), 0) and np.all(np.isfinite(problem.X_test))
    other = load_dataset(name, random_state=1)
    assert other.describe().equals(count) and not np.array_equal(other.X, problem.X)


@pytest.mark.parametrize("name", ["vowel", "vehicle", "segment"])
def test_every_other_class_is_novel_by_the_alphabet(name):
    info = DATASETS[name]
    names = sorted(info.class_names.values())
    assert [info.class_names[code] for code in info.known_classes] == names[::2]
    assert [info.class_names[code] for code in info.novel_classes] == names[1::2]


def test_attacks_with_enough_rows_are_the_classes_of_nslkdd():
    arrays = on_board.load(DATASETS["nslkdd"].on_board)
    train, test = (np.bincount(arrays[key], minlength=len(NSLKDD)) for key in ("y", "y_test"))
    attack = np.array(NSLKDD) != "normal"
    for least in (18, 30, 38):
        assert tuple(np.flatnonzero((train >= least) & attack)) == DATASETS["nslkdd"].known_classes
        assert tuple(np.flatnonzero((train == 0) & (test >= least))) == DATASETS["nslkdd"].novel_classes


def test_labels_of_nslkdd_come_from_the_train_file_only(alone):
    """And the test part of the mixed problem holds that of the other one."""
    arrays = on_board.load(DATASETS["nslkdd"].on_board)
    plain, mixed = load_dataset("nslkdd"), load_dataset("nslkdd-mixed")
    assert plain.without_label is None
    for problem in (plain, mixed):
        labelled = arrays["y"][np.isin(arrays["y"], problem.known_classes)]
        assert np.array_equal(problem.y[: len(labelled)], labelled) and np.all(problem.y[len(labelled) :] == -1)
        assert np.array_equal(problem.y_known, labelled)
    assert np.array_equal(mixed.y == -1, mixed.without_label)
    hidden = mixed.y_true[(mixed.y == -1) & np.isin(mixed.y_true, mixed.known_classes)]
    assert len(hidden) == 11_586 and np.sum(hidden == NSLKDD.index("normal")) == 6_798
    assert len(mixed.X_known) + len(mixed.X_novel) + len(hidden) == len(mixed.X)
    assert "train rows of known classes without label: 11586" in repr(mixed)


def test_rows_without_label_stay_so_when_classes_are_hidden(alone):
    mixed = load_dataset("nslkdd-mixed")
    hidden = mixed.hide("neptune")
    assert np.array_equal(hidden.without_label, mixed.without_label)
    assert np.array_equal(hidden.y == -1, mixed.without_label | (mixed.y_true == NSLKDD.index("neptune")))
    with pytest.raises(ValueError, match="without_label has 1 rows, but y_true has"):
        replace(mixed, without_label=np.array([True]))


def test_encoding_of_nslkdd(alone):
    """Against pandas: categories of the train file become columns, whole numbers above 1 their logarithms."""
    arrays = on_board.load(DATASETS["nslkdd"].on_board)
    problem, (table, _, _) = load_dataset("nslkdd"), load_table("nslkdd")
    expected = pd.get_dummies(table, columns=["protocol_type", "service", "flag"], prefix_sep="=", dtype=float)
    counts = [
        n for n in table.select_dtypes("number") if arrays["X"][:, list(arrays["feature_names"]).index(n)].max() > 1
    ]
    assert {"duration", "src_bytes", "count"} < set(counts) and "serror_rate" not in counts and "land" not in counts
    expected[counts] = np.log1p(expected[counts])
    expected = expected.reindex(columns=problem.feature_names, fill_value=0.0)
    spread = expected.std(ddof=0).where(expected.max() > expected.min(), 1.0)
    assert np.allclose(problem.X, (expected - expected.mean()) / spread)
    services = arrays["categories_service"]
    in_train = services[arrays["X"][:, list(arrays["feature_names"]).index("service")].astype(int)]
    assert {n for n in problem.feature_names if n.startswith("service=")} == {f"service={name}" for name in in_train}
    assert set(services) - set(in_train) == {"tftp_u"}  # which only the test file has


@pytest.mark.parametrize("name", [*ON_BOARD, "digits"])
def test_tables_have_the_rows_of_the_problem_with_the_novel_ones_unlabelled(alone, name):
    problem = load_dataset(name)
    X, y, y_true = load_table(name)
    assert X.shape == (len(problem.X), DATASETS[name].shape[1])
    names = pd.Series(problem.class_names)
    assert y_true.tolist() == names[problem.y_true].tolist()
    assert np.array_equal(y.isna(), problem.y == -1) and y.dropna().equals(y_true[y.notna()])
    test, _, test_true = load_table(name, part="test")
    assert test_true.tolist() == names[problem.y_test].tolist() and list(test.columns) == list(X.columns)
    if "nslkdd" not in name and DATASETS[name].standardize:
        varies = X.max() > X.min()
        assert np.allclose(problem.X, (X - X.mean()) / X.std(ddof=0).where(varies, 1.0))


def test_columns_of_a_table_keep_their_kind(alone):
    X, _, _ = load_table("nslkdd")
    text = X.columns[[isinstance(value, str) for value in X.iloc[0]]]
    assert list(text) == ["protocol_type", "service", "flag"]
    assert X["flag"].unique().tolist()[:2] == ["SF", "S0"] and X["src_bytes"].dtype == np.int64
    X, y, _ = load_table("steel")
    assert X["Edges_Index"].dtype == np.float64 and X["X_Minimum"].dtype == np.int64
    assert set(y.dropna()) == {"Z_Scratch", "K_Scatch", "Bumps"}
    assert "V1" not in load_table("vowel").X


def test_a_table_has_two_parts():
    with pytest.raises(ValueError, match="part must be 'train' or 'test', got 'all'"):
        load_table("steel", part="all")


def test_other_faults_are_only_in_the_variant(alone):
    plain, other = load_table("steel"), load_table("steel-other")
    assert "Other_Faults" not in set(plain.y_true)
    assert other.y[other.y_true == "Other_Faults"].isna().all()
