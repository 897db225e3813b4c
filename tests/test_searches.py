"""The searches behind the evidence: what is declared, that a unit can be stopped at any moment, and its summary."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from test_measure import with_other_novel_labels

import ncdlib
from ncdlib.evidence import experiments, search_summary, searches
from ncdlib.evidence.paper import DATASETS
from ncdlib.evidence.searches import DEFAULT, Unit
from ncdlib.selection.scoring import READINGS

UNIT = Unit("blobs", "PBN", 1)
QUICK = {
    "n_trials": property(lambda unit: 4),
    "race": property(lambda unit: ((3, 3), (2, 4))),
    "n_fits": property(lambda unit: 2),
}


def make_quick(patch, problem=None):
    problem = problem or ncdlib.make_ncd_blobs(5, 3, n_samples=300, cluster_std=5)
    patch.setattr(searches, "load_problem", lambda name: problem)
    searches._problem.cache_clear()
    for name, value in QUICK.items():
        patch.setattr(Unit, name, value)
    for method in ("PBN", experiments.TOP_K_AS_FRACTION):
        name, _, space = experiments.SEARCHES[method]
        patch.setitem(experiments.SEARCHES, method, (name, {"epochs": 2}, space))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        assert not searches.is_done(UNIT, folder)
        n_rows = searches.measure_unit(UNIT, folder)
        assert searches.is_done(UNIT, folder) and searches.measure_unit(UNIT, folder) == 0
        yield folder, n_rows
    searches._problem.cache_clear()


def test_a_unit_is_measured_whole(measured):
    folder, n_rows = measured
    choices, novel = (pd.read_csv(folder / "search_v2" / name) for name in ("choices.csv", "novel.csv"))
    assert n_rows == len(choices) + len(novel) and len(choices) == len(UNIT.rules)
    assert not novel.duplicated(list(searches.NOVEL_KEY)).any()
    assert (novel.query("setting == 'known'")["k"] == 3).all() and novel["error"].isna().all()
    assert (novel.query("trial == @DEFAULT").groupby("setting")["seed"].nunique() == 2).all()
    assert (novel.query("seed == 0 and trial >= 0").groupby("setting")["trial"].nunique() == 4).all()
    trainings = pd.read_csv(folder / "search_v2" / UNIT.file_name)
    assert trainings["seed"].max() == 3 and not trainings.duplicated(["trial", "fold", "seed"]).any()


def test_the_summary_by_hand(measured):
    folder, _ = measured
    summary = search_summary(folder)
    novel = pd.read_csv(folder / "search_v2" / "novel.csv")
    choices = pd.read_csv(folder / "search_v2" / "choices.csv")
    assert len(summary) == 2 * len(choices) and summary[["acc", "default", "random_trial"]].notna().all().all()
    assert set(summary["reading"]) == set(READINGS) and summary["published"].isna().all()
    cells = (("known", "acc_train", "train rows"), ("estimated", "acc", "test rows"))
    for setting, column, where in cells:
        cell = f"setting == '{setting}' and rule == 'race' and reading == 'ari_alone'"
        (row,) = summary.query(f"{cell} and clusters_of == '{where}'").to_dict("records")
        (choice,) = choices.query(cell).to_dict("records")
        count = "given" if setting == "known" else f"voted {int(choice['k'])}"
        here = novel[novel["setting"] == setting]
        chosen = here[(here["trial"] == choice["trial"]) & (here["count"] == count)]
        assert row["acc"] == pytest.approx(100 * chosen[column].mean()) and len(chosen) == 2
        without = here[here["count"] == ("given" if setting == "known" else "own")]
        assert row["default"] == pytest.approx(100 * without[without["trial"] == DEFAULT][column].mean())
        drawn = without[(without["trial"] >= 0) & (without["seed"] == 0)]
        assert row["random_trial"] == pytest.approx(100 * drawn[column].mean()) and len(drawn) == 4


def test_novel_labels_choose_nothing(measured, tmp_path, monkeypatch):
    problem = with_other_novel_labels(ncdlib.make_ncd_blobs(5, 3, n_samples=300, cluster_std=5))
    make_quick(monkeypatch, problem)
    searches.measure_unit(UNIT, tmp_path)
    names = [name for name in ("choices.csv", UNIT.file_name)]
    for name in names:
        first, second = (pd.read_csv(folder / "search_v2" / name) for folder in (measured[0], tmp_path))
        timed = [column for column in first if column in ("fit_time", "seconds")]
        pd.testing.assert_frame_equal(first.drop(columns=timed), second.drop(columns=timed))
    first, second = (pd.read_csv(folder / "search_v2" / "novel.csv") for folder in (measured[0], tmp_path))
    assert (first["acc"] != second["acc"]).mean() > 0.9  # only the score knows
    searches._problem.cache_clear()


def test_tabularncd_is_trained_for_its_setting(tmp_path, monkeypatch):
    make_quick(monkeypatch)
    unit = Unit("blobs", experiments.TOP_K_AS_FRACTION, 0, "estimated")
    searches.measure_unit(unit, tmp_path)
    summary = search_summary(tmp_path)
    assert set(summary["setting"]) == {"estimated"} and summary["acc"].notna().all()
    assert searches.is_done(unit, tmp_path) and not searches.is_done(
        Unit("blobs", experiments.TOP_K_AS_FRACTION, 0), tmp_path
    )
    searches._problem.cache_clear()


def test_what_is_declared():
    units = searches.unit_list()
    assert len(set(units)) == len(units) == len({unit.file_name for unit in units})
    whole = {(u.method, u.dataset, u.draw) for u in units if not u.split}
    assert {(m, d, n) for m in ("PBN", "Baseline") for d in DATASETS for n in range(3)} <= whole
    assert {(experiments.TOP_K_AS_FRACTION, d, n) for d in DATASETS for n in range(3)} <= whole
    confirming = {(u.dataset, u.split) for u in units if u.split}
    assert confirming == {(d, s) for d in ("pendigits", "optdigits", "letter") for s in (1, 2)}


def test_other_classes_are_novel_in_another_split():
    first, second = Unit("digits", "PBN", 0).problem, Unit("digits", "PBN", 0, split=1).problem
    assert len(first.novel_classes) == len(second.novel_classes)
    assert first.novel_classes != second.novel_classes == Unit("digits", "PBN", 2, split=1).problem.novel_classes


def test_a_table_with_two_known_classes_is_not_searched(monkeypatch, tmp_path):
    make_quick(monkeypatch, ncdlib.make_ncd_blobs(2, 2))
    assert not UNIT.can_be_searched and searches.measure_unit(UNIT, tmp_path) == 0
    assert list(searches.plan([UNIT], tmp_path))[0].endswith("too few known classes to hide 2")
    searches._problem.cache_clear()


def test_the_plan_lists_what_is_missing(measured):
    folder, _ = measured
    *lines, total = searches.plan([UNIT, Unit("blobs", "PBN", 2)], folder)
    assert [line.split(" h ")[1].strip() for line in lines] == ["blobs: PBN, draw 2"]
    assert float(lines[0].split()[0]) >= 0 and "in all, 1 searches" in total


SCRIPT = """
import sys, pytest
sys.path.insert(0, {tests!r})
from test_searches import UNIT, make_quick
from ncdlib.evidence import searches
with pytest.MonkeyPatch.context() as patch:
    make_quick(patch)
    print(searches.measure_unit(UNIT, {folder!r}), searches.is_done(UNIT, {folder!r}))
"""


def test_kill_9_and_two_at_once(measured, tmp_path):
    """A killed process loses nothing that was finished; a second one leaves a unit that is being done alone."""
    code = SCRIPT.format(tests=os.path.dirname(__file__), folder=str(tmp_path))
    start = lambda: subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)  # noqa: E731
    process, trainings = start(), tmp_path / "search_v2" / UNIT.file_name
    while not (trainings.exists() and len(trainings.read_text().splitlines()) > 25):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGSTOP)
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        assert searches.measure_unit(UNIT, tmp_path) == 0  # it is the other's, though that one stands still
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = trainings.read_text().splitlines()
    out, _ = start().communicate()
    assert out.split() == [out.split()[0], "True"] and int(out.split()[0]) > 0
    assert trainings.read_text().splitlines()[: len(before)] == before
    for name in ("choices.csv", "novel.csv"):
        here, whole = (pd.read_csv(folder / "search_v2" / name) for folder in (tmp_path, measured[0]))
        pd.testing.assert_frame_equal(here.drop(columns="seconds"), whole.drop(columns="seconds"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--draws", "a"], "--draws must be numbers"),
        (["--datasets", "mnist"], "there is no 'mnist'; choose from"),
        (["--methods", "PBN;SVM"], "there is no 'SVM'; choose from"),
    ],
)
def test_wrong_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit) as end:
        searches.main(arguments)
    assert end.value.code == 2 and message in capsys.readouterr().err


def test_params_of_a_choice_are_those_of_its_trial(measured):
    folder, _ = measured
    choices = pd.read_csv(folder / "search_v2" / "choices.csv")
    trainings = pd.read_csv(folder / "search_v2" / UNIT.file_name).drop_duplicates("trial").set_index("trial")
    for choice in choices.itertuples():
        assert json.loads(choice.params) == json.loads(trainings["params"][choice.trial])
    assert np.isfinite(choices["score"]).all()
