import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from faults import full_disk, read_only

from ncdlib._io.row_store import RowStore


@pytest.fixture
def store(tmp_path):
    return RowStore(tmp_path / "runs.csv", key=["data", "seed"])


def row(seed, acc=0.5, data="digits"):
    return {"data": data, "seed": seed, "acc": acc}


def python(code, *arguments):
    """Start another Python process."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_rows_come_back_as_they_went_in(store):
    values = [0.1 + 0.2, 1e-300, np.float64(1 / 3), np.float32(0.5), 7, None, float("nan"), float("inf")]
    for seed, value in enumerate(values):
        assert store.append(row(seed, value))
    back = store.rows()
    assert back["seed"].tolist() == list(range(len(values)))
    expected = [np.nan if value is None else float(value) for value in values]
    assert np.array_equal(back["acc"], expected, equal_nan=True)


def test_text_comes_back_as_it_went_in(store):
    texts = ['a, "quoted" cell', "NA", "né\u2028e", '{"lr": 0.1}']
    for seed, text in enumerate(texts):
        store.append(row(seed, text))
    assert store.rows()["acc"].tolist() == texts


def test_a_key_is_stored_once(store):
    assert store.append(row(1))
    assert not store.append(row(1, acc=0.9))
    assert store.append(row(1, data="letter"))
    assert store.rows()["acc"].tolist() == [0.5, 0.5]
    assert row(1) in store and row(2) not in store


@pytest.mark.parametrize("same", [1, 1.0, np.int64(1), np.float32(1), True])
def test_a_number_has_one_spelling_in_the_key(store, same):
    store.append(row(1))
    assert (row(same) in store) == (same is not True)


def test_rows_read_from_the_file_are_known_to_it(store):
    store.append({"data": "digits", "seed": None, "acc": 1})
    store.append({"data": "digits", "seed": 3, "acc": 1})
    assert all(stored in store for stored in store.rows().to_dict("records"))


def test_nothing_stored_yet(store):
    assert store.rows().empty and list(store.rows().columns) == ["data", "seed"]
    assert row(1) not in store


def test_columns_keep_the_order_of_the_file(store):
    store.append(row(1))
    store.append({"acc": 0.25, "seed": 2, "data": "letter"})
    assert store.path.read_text() == "data,seed,acc\ndigits,1,0.5\nletter,2,0.25\n"


def test_other_columns_are_refused(store):
    store.append(row(1))
    with pytest.raises(ValueError, match=r"columns of .*runs.csv: missing acc; unknown nmi"):
        store.append({"data": "digits", "seed": 2, "nmi": 0.5})
    assert len(store.rows()) == 1


def test_a_file_without_the_key_columns_is_refused(store):
    store.path.write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match=r"runs.csv has no column data, seed; its columns are x, y"):
        store.append(row(1))
    assert store.path.read_text() == "x,y\n1,2\n"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"data": "digits", "acc": 1}, "the row has no seed"),
        ({"data": "a\nb", "seed": 1, "acc": 1}, "several lines"),
        ({"data": "a", "seed": 1, "acc": [1, 2]}, "not a list"),
    ],
)
def test_rows_that_do_not_fit_are_refused(store, bad, message):
    with pytest.raises(ValueError, match=message):
        store.append(bad)
    assert not store.path.exists()


@pytest.mark.parametrize("torn", ["digits,2,0.", "digits", "digits,2,\u00e9".encode()[:-1].decode("latin-1")])
def test_a_torn_last_line_is_ignored_and_then_repaired(store, torn):
    store.append(row(1))
    with open(store.path, "a", encoding="latin-1") as file:
        file.write(torn)
    assert store.rows()["seed"].tolist() == [1]
    assert store.append(row(2, 0.75))
    assert store.path.read_text() == "data,seed,acc\ndigits,1,0.5\ndigits,2,0.75\n"


@pytest.mark.parametrize("torn", ["data,se", "data,seed,acc\n", "data,seed,acc\ndigits,1"])
def test_a_torn_first_write_is_repaired(store, torn):
    store.path.write_text(torn)
    assert store.rows().empty
    store.append(row(1))
    assert store.path.read_text() == "data,seed,acc\ndigits,1,0.5\n"


APPEND = """
import sys
from ncdlib._io.row_store import RowStore
store = RowStore(sys.argv[1], key=["data", "seed"])
print("ready", flush=True)
input()
print(sum(store.append({"data": "digits", "seed": seed, "acc": 0.5}) for seed in range(100)))
"""


def test_processes_that_append_at_once_store_each_row_once(store):
    writers = [python(APPEND, store.path) for _ in range(2)]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 2
    for writer in writers:
        print(file=writer.stdin, flush=True)
    stored = [int(writer.communicate(timeout=300)[0]) for writer in writers]
    assert sum(stored) == 100
    assert sorted(store.rows()["seed"]) == list(range(100))


APPEND_FOR_EVER = """
import itertools, sys
from ncdlib._io.row_store import RowStore
store = RowStore(sys.argv[1], key=["data", "seed"])
for seed in itertools.count():
    store.append({"data": "digits", "seed": seed, "acc": "x" * 5000})
"""


def wait_until(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def test_kill_in_the_middle_loses_no_row_and_blocks_nobody(store):
    writer = python(APPEND_FOR_EVER, store.path)
    wait_until(lambda: store.path.exists() and store.path.stat().st_size > 50_000)
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    seeds = store.rows()["seed"].tolist()
    assert seeds == list(range(len(seeds))) and len(seeds) >= 9
    assert store.append(row(-1))
    assert store.rows()["seed"].tolist() == [*seeds, -1]


CLAIM = """
import sys, time
from ncdlib._io.row_store import RowStore
store = RowStore(sys.argv[1], key=["data", "seed"])
with store.claim({"data": "digits", "seed": 1}) as mine:
    print(mine, flush=True)
    time.sleep(300)
"""


def test_a_claim_keeps_others_away_until_its_process_dies(store):
    other = python(CLAIM, store.path)
    assert other.stdout.readline() == "True\n"
    with store.claim(row(1)) as mine, store.claim(row(2)) as another:
        assert (mine, another) == (False, True)
    other.send_signal(signal.SIGKILL)
    other.communicate()
    with store.claim(row(1)) as mine:
        assert mine


def test_what_is_stored_cannot_be_claimed(store):
    with store.claim(row(1)) as mine:
        assert mine and store.append(row(1))
    with store.claim(row(1)) as mine:
        assert not mine


def test_an_error_ends_a_claim_and_reaches_the_caller(store):
    with pytest.raises(OSError, match="^of the caller$"), store.claim(row(1)):
        raise OSError("of the caller")
    with store.claim(row(1)) as mine:
        assert mine


def test_locks_leave_no_files(store, tmp_path):
    with store.claim(row(1)):
        store.append(row(1))
    assert os.listdir(tmp_path) == ["runs.csv"]


def test_read_only_folder(store, tmp_path):
    store.append(row(1))
    with read_only(tmp_path):
        for attempt in (lambda: store.append(row(2)), lambda: store.claim(row(2)).__enter__()):
            with pytest.raises(OSError, match=r"cannot write to .*runs.csv \(.*\); the rows in it are safe"):
                attempt()
        assert len(store.rows()) == 1
    assert len(store.rows()) == 1


def test_full_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    store = RowStore(folder / "runs.csv", key=["data", "seed"])
    with full_disk(folder, 1 << 20):
        for seed in range(7):
            store.append(row(seed, "x" * 120_000))
        before = store.path.read_bytes()
        with pytest.raises(OSError, match=r"cannot write to .*runs.csv \((No space left|File too large).*safe"):
            store.append(row(7, "x" * 800_000))
        assert store.path.read_bytes() == before
        assert store.append(row(8))
        assert store.rows()["seed"].tolist() == [*range(7), 8]


def test_folder_is_made(tmp_path):
    store = RowStore(tmp_path / "new" / "folder" / "runs.csv", key=["seed"])
    assert store.append({"seed": 1})
    assert isinstance(store.rows(), pd.DataFrame) and Path(store.path).is_file()


def test_columns_are_renamed_and_added_for_all_rows_and_the_same_call_changes_nothing_more(tmp_path):
    store = RowStore(tmp_path / "runs.csv", key=["origin", "seed"])
    for seed in range(3):
        store.append({"origin": "a, b", "seed": seed, "acc": 0.1 * seed, "empty": None})
    cells = store.rows().to_numpy().tolist()
    change = {"rename": {"origin": "params_from"}, "add": {"note": "old", "nothing": None}}
    renamed = RowStore(store.path, key=["params_from", "seed"])
    columns = ["params_from", "seed", "acc", "empty", "note", "nothing"]
    assert store.change_columns(**change) == columns
    after = store.path.read_bytes()
    assert renamed.change_columns(**change) == columns and store.path.read_bytes() == after
    rows = renamed.rows()
    pd.testing.assert_frame_equal(rows[columns[:4]], pd.DataFrame(cells, columns=columns[:4]), check_dtype=False)
    assert rows["note"].eq("old").all() and rows["nothing"].isna().all()
    row = dict.fromkeys(columns) | {"params_from": "a, b", "seed": 2}
    assert not renamed.append(row) and renamed.append(row | {"seed": 3})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rename": {"nope": "x"}}, "has no column nope; its columns are seed, acc"),
        ({"rename": {"acc": "seed"}}, "would have a column twice"),
    ],
)
def test_a_wrong_change_of_columns_changes_nothing(tmp_path, change, message):
    store = RowStore(tmp_path / "runs.csv", key=["seed"])
    with pytest.raises(ValueError, match="there are no columns to change"):
        store.change_columns(**change)
    store.append({"seed": 0, "acc": 0.5})
    before = store.path.read_bytes()
    with pytest.raises(ValueError, match=message):
        store.change_columns(**change)
    assert store.path.read_bytes() == before
