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

A fourth mark, ``slow``, is set here, on the tests in `SLOW`: ``make quick`` leaves them out.

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


# Files, or tests in them: those that start processes, train until something is learned, or read millions of rows.
SLOW = (
    "test_apply.py::test_a_dask_cluster_gives_the_same_file",
    "test_apply.py::test_all_of_a_result_is_saved",
    "test_apply.py::test_another_process_gives_the_same_labels_bit_for_bit",
    "test_apply.py::test_kill_9_leaves_no_half_file",
    "test_apply.py::test_ten_million_rows_in_bounded_memory",
    "test_discover_command.py::test_a_long_file",
    "test_bad_data.py::test_fit",
    "test_claims.py",
    "test_dask.py",
    "test_discover_command.py::test_command_line",
    "test_discover_command.py::test_command_line_with_a_search_and_parquet",
    "test_discover_command.py::test_ctrl_c_is_one_line_and_the_same_command_goes_on",
    "test_discover_command.py::test_ctrl_c_tells_of_the_store_that_was_not_asked_for",
    "test_discover.py::test_methods_by_name",
    "test_practice.py::test_no_class_is_claimed_where_all_rows_are_known",
    "test_discover.py::test_notes_on_what_an_option_did_not_do",
    "test_known.py::test_the_test_for_new_classes_keeps_its_level",
    "test_known.py::test_mixed_rows_get_their_known_label_and_the_rest_is_discovered",
    "test_known.py::test_image_segments_with_30_percent_known_rows_among_the_unlabelled",
    "test_download.py::test_two_processes_download_once",
    "test_measure.py::test_a_run_fills_what_is_missing_and_nothing_twice",
    "test_measure.py::test_a_stored_cell_is_reproduced",
    "test_measure.py::test_hidden_score_needs_no_novel_label_and_belongs_to_its_seed",
    "test_measure.py::test_novel_labels_enter_no_selection",
    "test_measure.py::test_summary",
    "test_measure.py::test_the_stored_mean_of_tabularncd_is_reproduced",
    "test_measure.py::test_verify_shows_what_other_tables_of_the_paper_have_of_the_same_runs",
    "test_options.py::test_kill_during_save_leaves_the_file_as_it_was",
    "test_packaging.py::test_wheel_and_sdist",
    "test_same_output.py",
    "test_search.py::test_a_stored_search_goes_on_and_gives_the_same_answer",
    "test_search.py::test_kill_9_loses_no_finished_trial",
    "test_search.py::test_ranked_by_the_setting_asked_for",
    "test_search.py::test_search_finds_better_than_the_worst_on_digits",
    "test_search.py::test_the_final_model_counts_within_the_range_of_the_search",
    "test_search.py::test_two_processes_give_the_serial_result",
    "test_search.py::test_workers_end_with_a_killed_process",
    "test_site.py",
    "test_stopped_runs.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        test = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
        if test in SLOW or item.path.name in SLOW:
            item.add_marker("slow")


def pytest_configure(config: pytest.Config) -> None:
    for name in NEEDS:
        config.addinivalue_line("markers", f"{name}: see tests/conftest.py")
    config.addinivalue_line("markers", "slow: see tests/conftest.py")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers():
        reason = NEEDS[mark.name](*mark.args) if mark.name in NEEDS else None
        if reason and os.environ.get("NCDLIB_NO_SKIP"):
            pytest.fail(f"{reason}, and NCDLIB_NO_SKIP forbids skipping", pytrace=False)
        elif reason:
            pytest.skip(reason)
