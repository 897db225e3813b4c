"""The evidence: what is stored, how it is measured, and that it can be stopped, killed and done again."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from faults import full_disk, read_only
from IPython.utils.capture import capture_output
from packaging.version import Version
from typer.testing import CliRunner

import ncdlib
from ncdlib.cli import app, main
from ncdlib.evidence import (
    best_params,
    compare_with_paper,
    effect_of_choices,
    load_results,
    load_trials,
    measure,
    paper_results,
    protocols,
    published_params,
    results,
    show_table,
    within_tolerance,
)
from ncdlib.evidence import experiments as declared
from ncdlib.evidence.experiments import SEARCH_TRIALS, Experiment, Search
from ncdlib.evidence.paper import DATASETS
from ncdlib.evidence.results import RUN_COLUMNS, RUN_KEY
from ncdlib.evidence.show import glue_all, starred_names

REAL_EXPERIMENTS = declared.experiment_list()
DIGITS = partial(Experiment, "clust", datasets=("digits",), runs=3)
TINY = [
    DIGITS("k-means", protocols.k_means),
    DIGITS("NCD k-means", protocols.ncd_k_means),
    DIGITS("SC", protocols.spectral),
    DIGITS("NCD SC", protocols.ncd_spectral, change={"s_min": 0.6, "n_components": 6}),
    DIGITS("PBN", protocols.deep("PBN"), change={"epochs": 2}),
    DIGITS("Baseline", protocols.deep("Baseline"), setting="estimated", change={"epochs": 2}),
    DIGITS("TabularNCD", protocols.deep("TabularNCD"), change={"epochs": 2}),
]
SLOW_RUN = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background of a shell
from ncdlib.evidence import experiments, protocols

def slow(problem, params, setting, seeds):
    for seed in seeds:
        time.sleep(0.2 if seed < 4 else 600)  # what is finished is stored before the rest is
        with open(f"{os.environ['NCDLIB_RESULTS']}/measured", "a") as file:
            file.write("a run\\n")
        yield from protocols.k_means(problem, params, setting, [seed])

experiments.experiment_list = lambda: [
    experiments.Experiment("clust", "k-means", slow, datasets=("digits",), runs=8)
]
experiments.search_list = lambda: []
from ncdlib.cli import main
sys.argv = ["ncd", "reproduce", "clust"]
main()
"""


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Small experiments on digits instead of the paper's, and a folder for their results."""
    monkeypatch.setattr(declared, "experiment_list", lambda: TINY)
    monkeypatch.setattr(declared, "search_list", lambda: [])
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def stored():
    return load_results()


# -- what is stored ---------------------------------------------------------------------------------------------


def test_no_stored_row_is_there_twice(stored):
    assert not stored.duplicated(list(RUN_KEY)).any()


def test_every_stored_row_has_its_provenance(stored):
    assert list(stored.columns) == list(RUN_COLUMNS)
    for column in ("source", "params", "ncdlib", "torch", "scikit-learn", "seconds"):
        assert stored[column].notna().all(), column
    assert stored["params"].map(json.loads).map(type).eq(dict).all()
    variant_data = stored["dataset"].isin(["human", "census"])
    assert (stored["source"].ne("original") == variant_data).all()


def test_no_stored_row_is_older_than_its_method(stored):
    for method, version in declared.CHANGED_IN.items():
        rows = stored[stored["method"].str.startswith(method)]
        assert len(rows) and (rows["ncdlib"].map(Version) >= Version(version)).all(), method


def test_every_stored_row_belongs_to_a_declared_experiment(stored):
    there = {
        (e.table, dataset, method, e.setting, e.origin, e.variant): e.runs
        for e in REAL_EXPERIMENTS
        for dataset in e.datasets
        for method in measure._row_methods(e)
    }
    of_trials = stored["table"] == measure.CORRELATION
    for key, rows in stored[~of_trials].groupby(["table", "dataset", "method", "setting", "origin", "variant"]):
        assert rows["seed"].max() < there[key], key
    assert stored.loc[of_trials, "method"].isin(declared.SEARCHES).all()


def test_stored_rows_with_published_hyperparameters_carry_those(stored):
    for row in stored[(stored["origin"] == "published") & stored["table"].isin(["ncd", "ncd_k_est"])].itertuples():
        assert json.loads(row.params) == published_params(row.method, row.setting, row.dataset)


def test_every_estimate_of_the_paper_is_among_the_candidates():
    printed = paper_results().query("table == 'silhouette_results' and method != 'Ground-truth'")
    assert set(printed["value"]) <= set(protocols.INDEX_K_RANGE)


def test_a_choice_is_compared_with_runs_of_its_own_origin(tmp_path):
    row = dict.fromkeys(RUN_COLUMNS) | {"dataset": "letter", "setting": "known", "variant": ""}
    usual = [
        row | {"table": "ncd", "method": "PBN", "origin": origin, "seed": seed, "acc": acc}
        for origin, acc in (("published", 0.6), ("searched", 0.4))
        for seed in (0, 1)
    ]
    choice = row | {"table": "choices", "method": "PBN: turned", "origin": "searched", "acc": 0.5}
    pd.DataFrame([*usual, choice | {"seed": 0}, choice | {"seed": 1}]).to_csv(tmp_path / "runs.csv", index=False)
    (effect,) = effect_of_choices(tmp_path).to_dict("records")
    assert effect["usual"] == pytest.approx(40) and effect["difference"] == pytest.approx(10)


def test_forgetting_takes_what_is_named_and_nothing_else(stored, tmp_path):
    """An experiment's rows may carry other names than it does: those of the indices."""
    of_index, of_features = "Dunn (PBN latent space)", results.FEATURES_METHOD
    rows = stored.iloc[[0] * 3].reset_index(drop=True).assign(table="silhouette_results")
    rows = rows.assign(dataset=["census", "census", "letter"], method=[of_index, of_features, of_index])
    rows.to_csv(tmp_path / "runs.csv", index=False)
    assert measure.forget(["silhouette_results"], ["census"], ["indices"], tmp_path) == 1
    assert load_results(tmp_path)["method"].tolist() == [of_features, of_index]


def test_a_dry_run_removes_nothing(stored, tmp_path, monkeypatch):
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    stored.to_csv(tmp_path / "runs.csv", index=False)
    done = CliRunner().invoke(app, ["reproduce", "clust", "--again", "--dry-run"])
    assert done.exit_code == 2 and "leave out --dry-run" in done.output
    assert len(load_results(tmp_path)) == len(stored)


def test_stored_scores_are_scores(stored):
    indices = stored["table"] == "silhouette_results"
    scores = stored.loc[~indices, ["acc", "nmi", "ari"]].dropna()
    assert scores[["acc", "nmi"]].ge(0).all().all() and scores.le(1).all().all()
    assert stored.loc[indices, "k"].between(1, 100).all()


# -- beside the paper -------------------------------------------------------------------------------------------


def test_the_comparison_has_every_figure_of_the_paper():
    cells = compare_with_paper()
    of_paper = cells[cells["paper"].notna()].reset_index(drop=True)
    assert of_paper["paper"].tolist() == paper_results()["value"].tolist()
    assert set(cells.loc[cells["paper"].isna(), "method"]) == {declared.MENDED}


def test_the_comparison_shows_means_of_runs_in_percent(tiny):
    for seed, acc in enumerate([0.5, 0.7]):
        row = dict.fromkeys(RUN_COLUMNS) | {"table": "clust", "dataset": "letter", "source": "original"}
        row |= {"method": "k-means", "setting": "known", "origin": "none", "variant": "", "seed": seed, "acc": acc}
        results.run_store().append(row)
    cells = compare_with_paper().set_index(["table", "dataset", "method"])
    cell = cells.loc[("clust", "letter", "k-means")]
    assert (cell["published"], cell["searched"], cell["runs"]) == (60.0, 60.0, 2)
    assert cell["published_std"] == pytest.approx(10.0)
    assert np.isnan(cells.loc[("clust", "average", "k-means"), "published"])
    shown = show_table("clust")
    assert shown.loc["Letter", ("k-means", "published")] == "60.0 ± 10.0"
    assert shown.loc["Human", ("k-means", "published")] == "–"
    within = within_tolerance(compare_with_paper(), "published")
    assert within.tolist() == [False]  # 60.0 against the paper's 50.7 ± 0.2


# -- measuring --------------------------------------------------------------------------------------------------


def test_a_run_fills_what_is_missing_and_nothing_twice(tiny):
    first = measure.pending_jobs(runs=1)
    assert measure.reproduce(first, verbose=False) == len(TINY)
    assert measure.reproduce(measure.pending_jobs(), verbose=False) == 2 * len(TINY)
    assert measure.pending_jobs() == []
    rows = load_results()
    assert not rows.duplicated(list(RUN_KEY)).any()
    assert all(sorted(of_method["seed"]) == [0, 1, 2] for _, of_method in rows.groupby("method"))
    assert rows[["acc", "nmi", "ari", "k", "seconds", "source", "torch"]].notna().all().all()
    # The same seeds give the same figures, alone or together.
    for experiment in TINY:
        cell = measure.verify("clust", "digits", experiment.method, runs=2)
        assert cell["same"].all(), cell


def test_one_known_class_is_enough_to_be_measured(tiny, monkeypatch):
    """With 25 of 26 letters novel, one is known."""
    problem = ncdlib.load_dataset("digits").with_novel(range(1, 10))
    lonely = [replace(TINY[i], runs=1, problem=lambda name: problem) for i in (1, 4)]
    monkeypatch.setattr(declared, "experiment_list", lambda: lonely)
    assert measure.reproduce(measure.pending_jobs(), verbose=False) == 2
    assert measure.verify("clust", "digits", "NCD k-means")["same"].all()


def test_a_budget_of_no_time_measures_nothing(tiny):
    assert measure.reproduce(measure.pending_jobs(), deadline=0, verbose=False) == 0


def test_names_that_do_not_exist(tiny):
    with pytest.raises(ValueError, match="there is no table 'nope'; choose from 'clust'"):
        measure.pending_jobs(["nope"])
    with pytest.raises(ValueError, match="there is no data set 'mnist'"):
        measure.pending_jobs(datasets=["mnist"])
    with pytest.raises(ValueError, match="there is no method 'DBSCAN'; choose from 'k-means'"):
        measure.pending_jobs(methods=["DBSCAN"])
    with pytest.raises(ValueError, match="there is no cell clust / DBSCAN; choose from 'k-means'"):
        measure.verify("clust", "digits", "DBSCAN")
    with pytest.raises(ValueError, match="not measured on 'letter', but on digits"):
        measure.verify("clust", "letter", "k-means")


@pytest.mark.parametrize(
    ("variant", "message"),
    [("", "needs a variant, such as 'split 1'"), ("no", "has no variant 'no', such as 'split 1'")],
)
def test_verify_names_a_variant(variant, message):
    with pytest.raises(ValueError, match=message):
        measure.verify("letter_splits", "letter", "PBN", variant=variant)


def test_verify_compares_the_same_runs(tiny):
    measure.reproduce(measure.pending_jobs(methods=["k-means"], runs=1), verbose=False)
    known, more = (measure.verify("clust", "digits", "k-means", runs=n) for n in (1, 2))
    assert known["same"].all() and known["stored"].notna().all()
    assert more["same"].isna().all() and more["stored"].isna().all()  # the mean of one run says nothing about two


def test_a_file_of_something_else_is_no_result(tmp_path, monkeypatch):
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    (tmp_path / "runs.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="runs.csv holds no measurements: it has no column 'dataset'"):
        load_results()


def with_other_novel_labels(problem):
    """The same rows; what the novel ones are called is shuffled."""
    rng = np.random.default_rng(0)
    y_true, y_test = problem.y_true.copy(), problem.y_test.copy()
    for y in (y_true, y_test):
        novel = np.isin(y, problem.novel_classes)
        y[novel] = rng.permutation(y[novel])
    return replace(problem, y_true=y_true, y_test=y_test)


def test_novel_labels_enter_no_selection(monkeypatch, tmp_path):
    # As many classes as digits has, whose folds are used; few rows.
    problem = ncdlib.make_ncd_blobs(5, 5, n_samples=300, cluster_std=6.0)
    shuffled = with_other_novel_labels(problem)
    assert (problem.y_true != shuffled.y_true).mean() > 0.3
    monkeypatch.setitem(SEARCH_TRIALS, "digits", 3)
    _, _, space = declared.SEARCHES["PBN"]
    monkeypatch.setitem(declared.SEARCHES, "PBN", ("PBN", {"epochs": 2}, space))
    search = Search("PBN", "digits", "known")
    experiment = DIGITS("PBN", protocols.deep("PBN"), "estimated", "searched", "PBN", change={"epochs": 2})
    trials, chosen, rows = [], [], []
    for number, version in enumerate((problem, shuffled)):
        folder = tmp_path / str(number)
        monkeypatch.setattr(measure, "load_problem", lambda name, version=version: version)
        measure.run_job(measure.Job(search, "digits"), folder=folder)
        trials.append(load_trials(search, folder))
        chosen.append([best_params("PBN", "digits", setting, folder) for setting in ("known", "estimated")])
        here = replace(experiment, problem=lambda name, version=version: version)
        rows += list(measure.measure(here, "digits", [0], folder))
    assert len(trials[0]) == 3 and trials[0].notna().all().all()
    pd.testing.assert_frame_equal(*trials)
    assert chosen[0] == chosen[1] and None not in chosen[0]
    assert (rows[0]["k"], rows[0]["params"]) == (rows[1]["k"], rows[1]["params"])
    assert rows[0]["acc"] != rows[1]["acc"]  # only the score knows


def test_hidden_score_needs_no_novel_label_and_belongs_to_its_seed():
    problem = ncdlib.make_ncd_blobs(random_state=0)
    params = {"lr": 1e-3, "dropout": 0.1, "latent_dim": 5, "w": 0.5}

    def scores(problem, seeds):
        return [row["ari"] for row in protocols.hidden_score("PBN")(problem, params, "known", seeds)]

    both = scores(problem, [0, 2])
    assert both[0] != both[1] and min(both) > 0.5
    assert scores(with_other_novel_labels(problem), [2]) == both[1:]


def test_a_search_that_is_not_finished_has_no_best(monkeypatch, tmp_path):
    monkeypatch.setitem(SEARCH_TRIALS, "digits", 2)
    path = results.search_path(Search("PBN", "digits", "known"), tmp_path)
    path.parent.mkdir(parents=True)
    header = "trial,fold,params,score_known,score_estimated,n_clusters\n"
    trial = '{n},{f},"{{""w"": 0.{n}}}",0.{n},0.5,3\n'
    path.write_text(header + "".join(trial.format(n=1, f=f) for f in range(5)))
    assert best_params("PBN", "digits", "known", tmp_path) is None
    for n_folds in range(1, 5):  # all trials, but not in every fold
        path.write_text(header + "".join(trial.format(n=n, f=f) for n in (0, 1) for f in range(n_folds)))
        assert best_params("PBN", "digits", "known", tmp_path) is None
    path.write_text(header + "".join(trial.format(n=n, f=f) for n in (0, 1, 2) for f in range(5)))
    # The third trial is beyond the budget that all methods share.
    assert best_params("PBN", "digits", "known", tmp_path) == {"w": 0.1}


# -- the paper's cells, again -------------------------------------------------------------------------------------

CHEAP_CELLS = [
    ("clust", "k-means"),
    ("clust", "NCD k-means"),
    ("clust", "SC"),
    ("clust", "NCD SC"),
    ("ncd", "PBN"),
    ("ncd", "Baseline"),
]


@pytest.mark.needs_data("pendigits")
@pytest.mark.parametrize(("table", "method"), CHEAP_CELLS)
def test_a_stored_cell_is_reproduced(table, method, stored, tmp_path, monkeypatch):
    here = stored[(stored["table"] == table) & (stored["dataset"] == "pendigits") & (stored["method"] == method)]
    here = here[here["origin"].isin(["none", "published"]) & (here["seed"] == 0)]
    if here.empty:
        pytest.skip("not measured yet: ncd reproduce")
    here.to_csv(tmp_path / "runs.csv", index=False)
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    cell = measure.verify(table, "pendigits", method, runs=1)
    assert cell["now"].to_numpy() == pytest.approx(cell["stored"].to_numpy(), abs=0.5), cell


@pytest.mark.needs_data("pendigits")
def test_the_stored_mean_of_tabularncd_is_reproduced(stored, tmp_path, monkeypatch):
    """Another kind of processor rounds otherwise, and which row is nearest may hang on the last bit.

    There, a run with the same seed is another run: single ones move by up to nineteen points, and what is reproduced is
    the cell of the table, a mean of ten.
    """
    cell = (stored["table"] == "ncd") & (stored["dataset"] == "pendigits") & (stored["method"] == "TabularNCD")
    here = stored[cell & (stored["origin"] == "published")]
    here.to_csv(tmp_path / "runs.csv", index=False)
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    found = measure.verify("ncd", "pendigits", "TabularNCD").query("origin == 'published'").set_index("metric")
    for metric, column in (("ACC", "acc"), ("NMI", "nmi"), ("ARI", "ari")):
        standard_error = 100 * here[column].std() * np.sqrt(2 / len(here))  # of the difference of two such means
        assert abs(found.loc[metric, "now"] - found.loc[metric, "stored"]) < 2 * standard_error, found


@pytest.mark.needs_data("mfeat")
def test_verify_shows_what_other_tables_of_the_paper_have_of_the_same_runs():
    cell = measure.verify("ncd_k_est", "mfeat", "Baseline", runs=1).query("origin == 'published'")
    paper = cell.set_index("metric")["paper"].dropna().to_dict()
    assert paper == {"ACC": 59.5, "NMI": 50.0, "ARI": 40.9}  # Tables 5, 6 and 7


# -- stopped and killed -------------------------------------------------------------------------------------------


def start_slow_run(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_RUN],
        env=os.environ | {"NCDLIB_RESULTS": str(folder)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.time() + 120
    while len(load_results(folder)) < 2:
        if process.poll() is not None or time.time() > deadline:
            process.kill()
            pytest.fail(f"no two runs were stored: {process.communicate()}")
        time.sleep(0.02)
    return process


def finish(folder, monkeypatch):
    experiment = replace(TINY[0], runs=8)
    monkeypatch.setattr(declared, "experiment_list", lambda: [experiment])
    monkeypatch.setattr(declared, "search_list", lambda: [])
    before = load_results(folder)
    measure.reproduce(measure.pending_jobs(folder=folder), folder=folder, verbose=False)
    after = load_results(folder)
    assert sorted(after["seed"]) == list(range(8))
    assert 2 <= len(before) < 8
    pd.testing.assert_frame_equal(after.head(len(before)), before)


def test_kill_9_during_a_run_loses_nothing_that_was_finished(tmp_path, monkeypatch):
    process = start_slow_run(tmp_path)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.communicate()
    finish(tmp_path, monkeypatch)


def test_ctrl_c_leaves_a_usable_store_and_says_so_in_one_line(tmp_path, monkeypatch):
    process = start_slow_run(tmp_path)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"stopped; all that was finished is in {tmp_path}" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    finish(tmp_path, monkeypatch)


def test_two_at_once_share_the_work(tmp_path):
    code = SLOW_RUN.replace("runs=8)\n]", "runs=2, variant=v) for v in 'abcdef'\n]")
    assert code != SLOW_RUN
    start = partial(subprocess.Popen, [sys.executable, "-c", code], env=os.environ | {"NCDLIB_RESULTS": str(tmp_path)})
    both = [start(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    rows = load_results(tmp_path)
    assert sorted(zip(rows["variant"], rows["seed"], strict=True)) == [(v, seed) for v in "abcdef" for seed in (0, 1)]
    assert sum(int(out.split(" rows measured")[0]) for out, _ in outputs) == 12
    assert len((tmp_path / "measured").read_text().splitlines()) == 12


def test_a_folder_that_cannot_be_written_is_an_error_of_one_line(ncd, tiny):
    code, _ = ncd("reproduce", "--methods", "k-means", "--runs", "1")
    before = load_results()
    assert code == 0 and len(before) == 1
    with read_only(tiny):
        code, out = ncd("reproduce", "--methods", "k-means")
        assert str(code).startswith("ncd: cannot write to ") and str(code).endswith("the rows in it are safe")
        assert "\n" not in code and out == ""
    pd.testing.assert_frame_equal(load_results(), before)


def test_a_full_disk_destroys_nothing(ncd, tiny, monkeypatch):
    long_rows = replace(TINY[0], change={"note": "x" * 5000})  # more than what is left of a file's last page
    monkeypatch.setattr(declared, "experiment_list", lambda: [long_rows])
    with full_disk(tiny, 1 << 16):
        assert ncd("reproduce", "--methods", "k-means", "--runs", "2")[0] == 0
        before = (tiny / "runs.csv").read_bytes()
        filler = tiny / "filler"
        with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"#" * 1024)
        code, _ = ncd("reproduce", "--methods", "k-means")
        assert "No space left" in str(code) or "File too large" in str(code)
        assert (tiny / "runs.csv").read_bytes() == before
        filler.unlink()
        assert ncd("reproduce", "--methods", "k-means")[0] == 0
        assert sorted(load_results()["seed"]) == [0, 1, 2]


# -- the command line -----------------------------------------------------------------------------------------------


@pytest.fixture
def ncd(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ncd", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr().out

    return run


def test_reproduce_lists_what_is_missing(ncd, tmp_path, monkeypatch):
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    code, out = ncd("reproduce", "clust", "ncd", "--datasets", "letter,mfeat", "--methods", "PBN; k-means", "--dry-run")
    *jobs, total = out.splitlines()
    assert code == 0
    assert [line.split("min  ")[1] for line in jobs] == [
        "letter: clust / k-means / known / none x 10",
        "mfeat: clust / k-means / known / none x 10",
        "letter: ncd / PBN / known / published x 10",
        "mfeat: ncd / PBN / known / published x 10",
    ]
    assert "in all, 4 jobs" in total and "results" not in os.listdir(tmp_path)


def test_the_estimate_of_a_search_is_for_the_trainings_it_lacks(ncd, tmp_path, monkeypatch):
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    path = results.search_path(Search("Baseline", "letter", "known"), tmp_path)
    path.parent.mkdir(parents=True)
    done = "".join(f"{trial},{fold},{{}},60,0.5,0.5,7\n" for trial in range(34) for fold in range(5))  # of 40 trials
    path.write_text("trial,fold,params,fit_time,score_known,score_estimated,n_clusters\n" + done)
    for method, minutes in [("Baseline", 30), ("PBN", None)]:  # another method's trainings say nothing
        _, out = ncd("reproduce", "search", "--datasets", "letter", "--methods", method, "--dry-run")
        assert (float(out.split()[0]) == minutes) == (method == "Baseline")


def test_reproduce_and_verify(ncd, tiny):
    code, out = ncd("reproduce", "--methods", "k-means", "--runs", "2")
    assert (code, out.split(",")[0]) == (0, "2 rows measured")
    code, out = ncd("verify", "clust", "--dataset", "digits", "--method", "k-means", "--runs", "2")
    assert code == 0 and out.splitlines()[0].split() == ["origin", "metric", "runs", "paper", "stored", "now", "same"]
    *cells, source = out.splitlines()[1:]
    assert [line.split()[-1] for line in cells] == ["True"] * 3
    assert source.startswith("data: ")  # not a file of the paper's data sets


def test_summary(ncd):
    code, out = ncd("reproduce", "--summary")
    assert code == 0 and out.splitlines()[0].split() == ["table", "origin", "cells", "within"]


def test_the_searches_cover_what_the_tables_need():
    searched = {(s.method, s.dataset) for s in declared.search_list()}
    assert {("PBN", d) for d in DATASETS} | {(declared.MENDED, d) for d in DATASETS} <= searched
    assert all(SEARCH_TRIALS[d] >= (15 if d in ("human", "cnae9") else 40) for d in DATASETS)


def test_again_forgets_no_more_runs_than_it_measures(stored, tmp_path, monkeypatch):
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    stored.to_csv(tmp_path / "runs.csv", index=False)
    cell = stored[(stored["table"] == "clust") & (stored["dataset"] == "mfeat") & (stored["method"] == "k-means")]
    assert len(cell) == 10
    assert measure.forget(["clust"], ["mfeat"], ["k-means"], tmp_path, runs=1) == 1
    assert len(load_results(tmp_path)) == len(stored) - 1
    arguments = ["reproduce", "clust", "--datasets", "mfeat", "--methods", "k-means", "--again", "--budget", "0"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2 and "leave out --dry-run and --budget" in " ".join(done.output.replace("│", " ").split())
    assert len(load_results(tmp_path)) == len(stored) - 1


def test_values_are_glued_as_plain_python():
    with capture_output() as captured:
        glue_all(
            share=np.float64(76.5), wins=np.int64(3), sure=np.bool_(True), best="PBN", **{"w_0.5": np.float32(0.5)}
        )
    glued = {out.metadata["scrapbook"]["name"]: out.data for out in captured.outputs}
    shown = {name: data["application/papermill.record/text/plain"] for name, data in glued.items()}
    assert shown == {"share": "76.5", "wins": "3", "sure": "True", "best": "'PBN'", "w_0.5": "0.5"}


def test_a_star_marks_what_is_measured_on_a_variant():
    starred = [name for name, printed in starred_names().items() if printed.endswith("*")]
    runs = load_results()
    assert starred == [name for name in DATASETS if (runs.loc[runs["dataset"] == name, "source"] != "original").any()]
