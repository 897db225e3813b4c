"""Real faults for tests: a folder that cannot be written to, a disk with no space left, a file that wants to run."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def mount(*arguments: str) -> bool:
    return os.geteuid() == 0 and subprocess.run(["mount", *arguments], capture_output=True).returncode == 0


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only. Permissions do not stop root, so for root it is mounted anew."""
    if os.geteuid() != 0:
        mode = folder.stat().st_mode
        folder.chmod(0o555)
        try:
            yield
        finally:
            folder.chmod(mode)
    elif mount("--bind", str(folder), str(folder)):
        try:
            assert mount("-o", "remount,bind,ro", str(folder))
            yield
        finally:
            subprocess.run(["umount", str(folder)], check=True)
    else:
        pytest.skip("root without the right to mount: nothing can be made read-only")


@contextmanager
def full_disk(folder: Path, n_bytes: int) -> Iterator[None]:
    """Let a folder hold `n_bytes` at most; without the right to mount, let no file be larger than that."""
    if mount("-t", "tmpfs", "-o", f"size={n_bytes}", "none", str(folder)):
        try:
            yield
        finally:
            subprocess.run(["umount", str(folder)], check=True)
    else:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Payload:
    """What pickle would run when it is loaded: it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)
