"""A file is written whole or not at all."""

import os
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor

import pytest
from faults import full_disk

from ncdlib._io.files import atomic_write


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


def save_often(path):
    for i in range(300):
        with atomic_write(path) as file:
            file.write(b"%d" % i)


def test_two_processes_write_one_file(tmp_path):
    """Either may find the other's unfinished file, and the next moment not."""
    with ProcessPoolExecutor(2) as pool:
        assert list(pool.map(save_often, [tmp_path / "a.csv"] * 2)) == [None, None]
    assert os.listdir(tmp_path) == ["a.csv"] and (tmp_path / "a.csv").read_bytes() == b"299"


def test_an_output_file_stays_private(tmp_path):
    path = tmp_path / "out.csv"
    path.touch(mode=0o600)
    with atomic_write(path) as file:
        file.write(b"x")
    assert path.stat().st_mode & 0o777 == 0o600
