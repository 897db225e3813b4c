"""The data sets from local files: counts, preprocessing, checks and the cache of parsed arrays."""

import os
import re
import shutil
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from faults import Payload, full_disk, read_only
from sklearn.datasets import load_digits

from ncdlib import DATASETS, load_dataset, make_ncd_blobs
from ncdlib.datasets import DataFileError

# The paper's table of data sets: features, known and novel classes and train rows, novel test rows.
# Its 515 features of m feat are 215 (no combination of the data set's files has 515).
PAPER = {
    "human": (562, 3, 3733, 3, 3619, 1453),
    "letter": (16, 19, 10229, 7, 3770, 1704),
    "pendigits": (16, 5, 3777, 5, 3717, 1734),
    "census": (67, 12, 12000, 6, 6000, 6000),
    "mfeat": (215, 5, 802, 5, 798, 202),
    "optdigits": (62, 5, 1918, 5, 1905, 905),
    "cnae9": (856, 4, 377, 5, 487, 113),
}
# Hidden classes and splits of the paper's hidden-class search.
FOLDS = {
    "human": (2, 3),
    "letter": (7, 5),
    "pendigits": (2, 5),
    "census": (6, 5),
    "mfeat": (2, 5),
    "optdigits": (2, 5),
    "cnae9": (2, 5),
}
NOVEL = {
    "human": "LAYING WALKING WALKING_DOWNSTAIRS",
    "letter": "A D H M P V X",
    "pendigits": "0 3 5 6 7",
    "mfeat": "1 3 6 7 9",
    "optdigits": "0 3 4 5 6",
    "cnae9": "1 2 3 6 9",
    "digits": "0 3 4 5 6",
}
WITH_DATA = {name: pytest.param(name, marks=pytest.mark.needs_data(name)) for name in PAPER}
ORIGINAL_ROWS = [param for name, param in WITH_DATA.items() if name != "census"]


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(shared_cache, monkeypatch):
    monkeypatch.setenv("NCDLIB_CACHE", str(shared_cache))
    return shared_cache


def counts(problem):
    columns = ["features", "known classes", "known rows", "novel classes", "novel rows", "novel test rows"]
    return tuple(problem.describe()[columns])


# What is in the problems.


@pytest.mark.parametrize("name", ORIGINAL_ROWS)
def test_counts_are_those_of_the_papers_table(name):
    problem = load_dataset(name)
    assert counts(problem) == PAPER[name]
    assert {problem.class_names[c] for c in problem.novel_classes} == set(NOVEL[name].split())


@pytest.mark.needs_data("letter")
def test_letter_has_all_rows_but_the_first():
    problem = load_dataset("letter")
    assert (len(problem.X), len(problem.X_test)) == (13_999, 6_000)
    assert set(problem.y_true) == set(problem.y_test) == set(range(26))


@pytest.mark.needs_data("census")
def test_small_census_is_balanced_at_the_rows_of_its_rarest_novel_class():
    problem = load_dataset("census")
    assert counts(problem) == (67, 12, 1987, 6, 6 * 187, 6 * 93)
    for y, cap in ((problem.y_true, 187), (problem.y_test, 93)):
        per_class = np.bincount(y, minlength=18)
        assert np.all(per_class[list(problem.novel_classes)] == cap)
        # The classes with fewer rows than the rarest novel one keep what they have.
        assert {c for c in problem.known_classes if per_class[c] < cap} <= {2, 16, 17}
        assert per_class.max() == cap
    assert "first 15,317 of the 2,458,285 rows" in problem.source


def write_census(path: Path, n_rows: int) -> Path:
    """Write a file in the format of the full census file: a header, and 69 columns of small integers."""
    rng = np.random.default_rng(0)
    columns = ["caseid", *(f"i{number}" for number in range(67)), "iYearsch"]
    table = pd.DataFrame(rng.integers(0, 10, (n_rows, 69)), columns=columns)
    table["caseid"] = 10_000 + np.arange(n_rows)
    table["iYearsch"] = np.arange(n_rows) % 18
    path.parent.mkdir()
    table[[*columns[:40], "iYearsch", *columns[40:-1]]].to_csv(path, index=False)
    return path


def test_full_census_protocol(tmp_path):
    path = write_census(tmp_path / "census" / "USCensus1990.data.txt", 18 * 3_600)
    problem = load_dataset("census", data_home=tmp_path, allow_modified=True)
    assert counts(problem) == PAPER["census"]
    assert len(problem.X_test_known) == 12_000
    assert np.all(np.bincount(problem.y_true) == 1000) and np.all(np.bincount(problem.y_test) == 1000)
    names = pd.read_csv(path, nrows=0).columns.drop(["caseid", "iYearsch"])
    assert problem.feature_names == names.tolist()


@pytest.mark.parametrize("name", [*WITH_DATA.values(), "digits"])
def test_preprocessing(name):
    problem = load_dataset(name)
    assert problem.X.dtype == problem.X_test.dtype == np.float64
    assert problem.X.flags.c_contiguous and problem.X_test.flags.c_contiguous
    assert problem.y.dtype == problem.y_test.dtype == np.int64
    assert len(set(problem.feature_names)) == problem.X.shape[1]
    if name == "cnae9":
        assert np.array_equal(problem.X, problem.X.round()) and problem.X.min() == 0 < 1 < problem.X.max()
    else:
        assert np.allclose(problem.X.mean(axis=0), 0)
        spread = problem.X.std(axis=0)
        assert np.all(np.isclose(spread, 1) | (spread == 0))
        assert np.all(problem.X_test[:, spread == 0] == 0)


@pytest.mark.parametrize("name", WITH_DATA.values())
def test_folds_are_those_of_the_papers_table(name):
    problem = load_dataset(name)
    assert (problem.n_hidden, problem.n_splits) == FOLDS[name]


@pytest.mark.needs_data("optdigits")
def test_optdigits_leaves_out_its_two_constant_columns():
    problem = load_dataset("optdigits")
    assert not {"pixel_0_0", "pixel_4_7"} & set(problem.feature_names)


@pytest.mark.needs_data("human")
def test_human_features_end_with_the_subject():
    problem = load_dataset("human")
    assert problem.feature_names[-1] == "subject"
    assert len(np.unique(problem.X[:, -1])) == 21
    assert [n for n in problem.feature_names if n.startswith("fBodyGyro-bandsEnergy()-1,8-")] == [
        f"fBodyGyro-bandsEnergy()-1,8-{axis}" for axis in "XYZ"
    ]


@pytest.mark.needs_data("human", "census", "pendigits")
def test_source_tells_variants_from_originals():
    assert load_dataset("human").source.startswith("rebuilt data")
    assert load_dataset("census").source.startswith("the first 15,317")
    assert load_dataset("pendigits").source == "original"


def test_digits_need_no_file_and_keep_their_images(monkeypatch):
    monkeypatch.setenv("NCDLIB_DATA", "/nowhere")
    problem = load_dataset("digits", download=False)
    assert counts(problem) == (64, 5, 624, 5, 633, 272)
    assert {problem.class_names[c] for c in problem.novel_classes} == set(NOVEL["digits"].split())
    images = np.concatenate([problem.images, problem.images_test])
    labels = np.concatenate([problem.y_true, problem.y_test])
    original = load_digits()
    rows = sorted((image.tobytes(), label) for image, label in zip(images, labels, strict=True))
    assert rows == sorted(
        (image.tobytes(), label) for image, label in zip(original.images, original.target, strict=True)
    )


def test_random_state_gives_other_splits_and_the_same_one_again():
    first, again, other = (load_dataset("digits", random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.X, again.X)
    assert not np.array_equal(first.images, other.images)


@pytest.mark.needs_data("mfeat", "pendigits")
def test_random_state_of_files():
    assert counts(load_dataset("mfeat", random_state=1)) != PAPER["mfeat"]
    assert np.array_equal(load_dataset("pendigits", random_state=1).X, load_dataset("pendigits").X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "mnist"}, "no data set 'mnist'; choose one of human, letter, .*, digits"),
        ({"name": "digits", "random_state": -1}, "random_state must be 0 or a positive integer, got -1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(**arguments)


def test_random_state_must_be_an_integer():
    with pytest.raises(TypeError):
        load_dataset("digits", random_state="zero")


def test_blobs():
    problem = make_ncd_blobs(n_known=3, n_novel=2, n_features=5, n_samples=100, random_state=1)
    assert counts(problem) == (5, 3, 42, 2, 28, 12)
    assert (problem.known_classes, problem.novel_classes) == ((0, 1, 2), (3, 4))
    assert not np.array_equal(problem.X, make_ncd_blobs(3, 2, 5, 100, random_state=2).X)


# Which files are read.

ROWS = "".join(f"{row % 10},{row},{row % 7}\n" for row in range(100))


def read_toy(paths):
    table = pd.read_csv(paths["toy.csv"], header=None).to_numpy()
    return {"X": table[:, 1:], "y": table[:, 0], "feature_names": np.array(["a", "b"])}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Register a data set 'toy', and return the folder that NCDLIB_DATA names, with its file."""
    from hashlib import sha256

    from ncdlib.datasets import DataFile

    file = DataFile(
        "toy.csv",
        len(ROWS),
        sha256(ROWS.encode()).hexdigest(),
        variants={sha256(ROWS[:-7].encode()).hexdigest(): "one row short"},
    )
    monkeypatch.setitem(
        DATASETS,
        "toy",
        replace(
            DATASETS["digits"],
            name="toy",
            source="original",
            files=(file,),
            archive="1/toy.zip",
            read=read_toy,
        ),
    )
    home = tmp_path / "data"
    (home / "toy").mkdir(parents=True)
    (home / "toy" / "toy.csv").write_text(ROWS)
    monkeypatch.setenv("NCDLIB_DATA", str(home))
    monkeypatch.setenv("NCDLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NCDLIB_UCI_URL", "http://127.0.0.1:9")
    return home


def test_data_home_comes_before_the_variable_and_that_before_the_cache(toy, tmp_path, monkeypatch):
    def put(folder, text):
        (tmp_path / folder / "toy").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "toy" / "toy.csv").write_text(text)

    put("cache", ROWS)
    put("home", ROWS[:-7])
    assert load_dataset("toy", data_home=tmp_path / "home").source == "one row short"
    assert load_dataset("toy").source == "original"
    put("data", ROWS[:-7])
    assert load_dataset("toy").source == "one row short"
    monkeypatch.delenv("NCDLIB_DATA")
    assert load_dataset("toy").source == "original"


@pytest.mark.parametrize("way", ["argument", "variable"])
def test_a_named_folder_must_exist(toy, tmp_path, monkeypatch, way):
    nowhere = tmp_path / "nowhere"
    if way == "variable":
        monkeypatch.setenv("NCDLIB_DATA", str(nowhere))
    with pytest.raises(DataFileError, match=f"no folder {nowhere}"):
        load_dataset("toy", data_home=nowhere if way == "argument" else None)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (ROWS[:-20], f"it has {len(ROWS) - 20} bytes of {len(ROWS)}, and may be cut short"),
        (ROWS + "0,1,1\n", f"it has {len(ROWS) + 6} bytes, and the original {len(ROWS)}"),
        (ROWS.replace("99", "98"), "its sha256 is [0-9a-f]{64}, and the original's [0-9a-f]{64}"),
        ("<!DOCTYPE html><html>404</html>", "it is a web page"),
        ("", f"it has 0 bytes of {len(ROWS)}"),
    ],
)
def test_a_file_that_differs_is_refused(toy, content, reason):
    path = toy / "toy" / "toy.csv"
    path.write_text(content)
    pattern = f"{path} is not the original file of data set toy: {reason}.*http.*1/toy.zip.*allow_modified=True"
    with pytest.raises(DataFileError, match=pattern):
        load_dataset("toy")
    assert path.read_text() == content


def test_a_modified_file_is_accepted_on_demand_and_leaves_a_note(toy):
    (toy / "toy" / "toy.csv").write_text(ROWS.replace("99", "98"))
    assert load_dataset("toy", allow_modified=True).source == "modified data: toy.csv is not the original"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<html>", "not in index|out of bounds|X has"),
        ("0,1,1\n1,1,1\n", r"y has the classes \[0, 1\]"),
        (ROWS.replace("99,1", "99,"), "missing or infinite values"),
        (ROWS.replace("\n", ",5\n"), r"X has shape \(100, 3\), for 100 labels and 2 feature names"),
        (ROWS + "1,2,3,4,5\n", "Expected 3 fields"),
        ("", "No columns to parse"),
    ],
)
def test_a_modified_file_must_still_make_sense(toy, content, reason):
    (toy / "toy" / "toy.csv").write_text(content)
    with pytest.raises(DataFileError, match=f"the files of data set toy cannot be read: .*({reason})"):
        load_dataset("toy", allow_modified=True)


@pytest.mark.needs_files("letter")
def test_a_truncated_original_is_refused(tmp_path):
    whole = Path(os.environ["NCDLIB_DATA"], "letter", "letter-recognition.data").read_bytes()
    (tmp_path / "letter").mkdir()
    (tmp_path / "letter" / "letter-recognition.data").write_bytes(whole[:-1000])
    with pytest.raises(DataFileError, match="it has 711565 bytes of 712565"):
        load_dataset("letter", data_home=tmp_path)


@pytest.mark.needs_data("human")
def test_human_file_of_the_right_size_but_not_the_right_shape_is_refused(tmp_path):
    shutil.copytree(Path(os.environ["NCDLIB_DATA"], "human"), tmp_path / "human")
    path = tmp_path / "human" / "test" / "X_test.txt"
    path.chmod(0o644)
    path.write_bytes(b"1 2 3\n" * (26_458_166 // 6) + b" \n")
    assert path.stat().st_size == 26_458_166
    with pytest.raises(DataFileError, match="the files of data set human cannot be read"):
        load_dataset("human", data_home=tmp_path)


# The cache of parsed arrays.


@pytest.fixture
def count_reads(toy, monkeypatch):
    calls = []

    def read(paths):
        calls.append(paths)
        return read_toy(paths)

    monkeypatch.setitem(DATASETS, "toy", replace(DATASETS["toy"], read=read))
    return calls


def test_second_load_reads_arrays_without_pickle(count_reads, tmp_path):
    first, second = load_dataset("toy"), load_dataset("toy")
    assert len(count_reads) == 1
    assert np.array_equal(first.X, second.X) and np.array_equal(first.y_test, second.y_test)
    (cached,) = (tmp_path / "cache" / "toy").iterdir()
    with np.load(cached, allow_pickle=False) as arrays:
        assert {"X", "y", "feature_names"} == set(arrays)


def test_a_changed_file_is_not_served_from_the_cache(count_reads, toy):
    path = toy / "toy" / "toy.csv"
    load_dataset("toy")
    before = path.stat()
    path.write_text(ROWS.replace(",50,", ",99,"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    load_dataset("toy", allow_modified=True)
    assert len(count_reads) == 2


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:300] + b"?" + b[301:]])
def test_a_damaged_cache_is_noticed_and_replaced(count_reads, tmp_path, damage):
    expected = load_dataset("toy").X
    (cached,) = (tmp_path / "cache" / "toy").iterdir()
    cached.write_bytes(damage(cached.read_bytes()))
    with pytest.warns(UserWarning, match=f"{cached} cannot be read"):
        assert np.array_equal(load_dataset("toy").X, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_dataset("toy")
    assert len(count_reads) == 2


def test_a_pickle_in_the_cache_is_not_run(count_reads, tmp_path):
    expected = load_dataset("toy").X
    (cached,) = (tmp_path / "cache" / "toy").iterdir()
    with np.load(cached) as file:
        arrays = dict(file)
    np.savez(cached, **arrays | {"feature_names": np.array([Payload(tmp_path / "it ran")], dtype=object)})
    with pytest.warns(UserWarning, match=f"{cached} cannot be read"):
        assert np.array_equal(load_dataset("toy").X, expected)
    assert not (tmp_path / "it ran").exists()


def test_read_only_cache_warns_once_and_loads(toy, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    cache.mkdir()
    with read_only(cache), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            assert len(load_dataset("toy").X) == 70
    assert len(caught) == 1
    pattern = f"cannot write to the cache folder {cache} .*data sets load, but slowly; set NCDLIB_CACHE"
    assert re.match(pattern, str(caught[0].message))
    assert list(cache.iterdir()) == []


def test_unusable_cache_warns_and_loads(toy, tmp_path):
    (tmp_path / "cache").write_text("a file in the place of the folder")
    with (
        pytest.warns(UserWarning, match="cannot be read"),
        pytest.warns(UserWarning, match="cannot write to the cache"),
    ):
        assert len(load_dataset("toy").X) == 70


def test_full_cache_warns_and_loads(toy, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    many = "".join(f"{row % 10},{row},{row % 7}\n" for row in range(100_000))  # 2.4 MB of parsed arrays
    (toy / "toy" / "toy.csv").write_text(many)
    with (
        full_disk(cache, 1 << 20),
        pytest.warns(UserWarning, match="cannot write to the cache folder .*(space|large)"),
    ):
        assert len(load_dataset("toy", allow_modified=True).X) == 70_000
        assert [path for path in cache.rglob("*") if path.is_file()] == []


@pytest.mark.needs_data("human")
def test_second_load_of_human_takes_well_under_a_second():
    load_dataset("human")
    start = time.process_time()  # on a busy machine, the time on the clock says little
    load_dataset("human")
    assert time.process_time() - start < 0.9
