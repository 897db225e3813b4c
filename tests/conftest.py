"""What all tests share.

Four things are not on every machine. A test that needs one says so, and is skipped where it is missing:

``@pytest.mark.needs_data("letter", "human")``
    These data sets: on board, or their files in ``$NCDLIB_DATA``.
``@pytest.mark.needs_files("letter")``
    The files of these data sets in ``$NCDLIB_DATA``, though they are on board.
``@pytest.mark.needs_chromium``
    The browser.
``@pytest.mark.needs_site``
    The built book in ``_build/html`` (``make book``).

With ``NCDLIB_NO_SKIP=1``, as `.ci/run` sets it, such a test fails instead of being skipped.
"""

import os
import shutil
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, settings

from ncdlib import DATASETS

os.environ.setdefault("MPLBACKEND", "Agg")

# Hypothesis: the same examples each time, or with NCDLIB_LONG=1 fifty times as many, and others each time.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=100, derandomize=True, **COMMON)
settings.register_profile("long", max_examples=5_000, print_blob=True, **COMMON)
settings.load_profile("long" if os.environ.get("NCDLIB_LONG") else "quick")

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_build" / "html"


def chapters_of(caption: str | None = None) -> list[str]:
    """The files of the numbered chapters in the order of `_toc.yml`, those of one part if its caption is given."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
    parts = [part for part in parts if part.get("numbered") and caption in (None, part["caption"])]
    return [Path(entry["file"]).name for part in parts for entry in part["chapters"]]


def missing_data(*names: str) -> str | None:
    return missing_files(*(name for name in names if not DATASETS[name].on_board))


def missing_files(*names: str) -> str | None:
    home = os.environ.get("NCDLIB_DATA")
    if names and not home:
        return "NCDLIB_DATA is not set"
    absent = [name for name in names if not Path(home, DATASETS[name].home).is_dir()]
    return f"{home} has no folder for {', '.join(absent)}" if absent else None


def missing_chromium() -> str | None:
    return None if shutil.which("chromium") else "chromium is not on the PATH"


def missing_site() -> str | None:
    return None if (SITE / "index.html").is_file() else "the book is not built: run make book"


NEEDS = {
    "needs_data": missing_data,
    "needs_files": missing_files,
    "needs_chromium": missing_chromium,
    "needs_site": missing_site,
}


def pytest_configure(config: pytest.Config) -> None:
    for name in NEEDS:
        config.addinivalue_line("markers", f"{name}: see tests/conftest.py")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers():
        reason = NEEDS[mark.name](*mark.args) if mark.name in NEEDS else None
        if reason and os.environ.get("NCDLIB_NO_SKIP"):
            pytest.fail(f"{reason}, and NCDLIB_NO_SKIP forbids skipping", pytrace=False)
        elif reason:
            pytest.skip(reason)
