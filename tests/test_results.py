"""What is stored: complete, in order, read once; and beside the paper's figures."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from packaging.version import Version

from ncdlib.evidence import (
    best_params,
    compare_with_paper,
    effect_of_choices,
    hidden_and_novel_ari,
    load_results,
    load_trials,
    paper_results,
    protocols,
    published_params,
    results,
    show_table,
    within_tolerance,
)
from ncdlib.evidence import experiments as declared
from ncdlib.evidence.experiments import SEARCH_TRIALS, Search
from ncdlib.evidence.paper import CORRELATION, DATASETS, TABLES
from ncdlib.evidence.results import RUN_COLUMNS, RUN_KEY


@pytest.fixture(scope="module")
def stored():
    return load_results()


def test_no_stored_row_is_there_twice(stored):
    assert not stored.duplicated(list(RUN_KEY)).any()


def test_every_stored_row_has_its_provenance(stored):
    assert list(stored.columns) == list(RUN_COLUMNS)
    for column in ("source", "params", "ncdlib", "torch", "scikit-learn", "seconds"):
        assert stored[column].notna().all(), column
    assert stored["params"].map(json.loads).map(type).eq(dict).all()
    variant_data = stored["dataset"].isin(["human", "census", *declared.OTHER_TABLES])
    assert (stored["source"].ne("original") == variant_data).all()


def test_no_stored_row_is_older_than_its_method(stored):
    for method, version in declared.CHANGED_IN.items():
        rows = stored[stored["method"].str.startswith(method)]
        assert len(rows) and (rows["ncdlib"].map(Version) >= Version(version)).all(), method


def test_every_stored_row_belongs_to_a_declared_experiment(stored):
    there = {
        (e.table, dataset, method, e.setting, e.params_from, e.variant): e.runs
        for e in declared.experiment_list()
        for dataset in e.datasets
        for method in e.row_methods
    }
    of_trials = stored["table"] == CORRELATION
    for key, rows in stored[~of_trials].groupby(["table", "dataset", "method", "setting", "params_from", "variant"]):
        assert rows["seed"].max() < there[key], key
    assert stored.loc[of_trials, "method"].isin(declared.SEARCHES).all()


def test_stored_rows_with_published_hyperparameters_carry_those(stored):
    for row in stored[(stored["params_from"] == "published") & stored["table"].isin(["ncd", "ncd_k_est"])].itertuples():
        assert json.loads(row.params) == published_params(row.method, row.setting, row.dataset)


def test_every_estimate_of_the_paper_is_among_the_candidates():
    printed = paper_results().query("table == 'silhouette_results' and method != 'Ground-truth'")
    assert set(printed["value"]) <= set(protocols.INDEX_K_RANGE)


def test_a_choice_is_compared_with_runs_of_its_own_hyperparameters(tmp_path):
    row = dict.fromkeys(RUN_COLUMNS) | {"dataset": "letter", "setting": "known", "variant": ""}
    usual = [
        row | {"table": "ncd", "method": "PBN", "params_from": source, "seed": seed, "acc": acc}
        for source, acc in (("published", 0.6), ("searched", 0.4))
        for seed in (0, 1)
    ]
    choice = row | {"table": "choices", "method": "PBN: turned", "params_from": "searched", "acc": 0.5}
    pd.DataFrame([*usual, choice | {"seed": 0}, choice | {"seed": 1}]).to_csv(tmp_path / "runs.csv", index=False)
    (effect,) = effect_of_choices(tmp_path).to_dict("records")
    assert effect["usual"] == pytest.approx(40) and effect["difference"] == pytest.approx(10)


def test_stored_scores_are_scores(stored):
    indices = stored["table"] == "silhouette_results"
    scores = stored.loc[~indices, ["acc", "nmi", "ari"]].dropna()
    assert scores[["acc", "nmi"]].ge(0).all().all() and scores.le(1).all().all()
    assert stored.loc[indices, "k"].between(1, 100).all()


def test_a_file_of_something_else_is_no_result(tmp_path, monkeypatch):
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    (tmp_path / "runs.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="runs.csv holds no measurements: it has no column 'dataset'"):
        load_results()


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


def test_the_searches_cover_what_the_tables_need():
    searched = {(s.method, s.dataset) for s in declared.search_list()}
    assert {("PBN", d) for d in DATASETS} | {(declared.TOP_K_AS_FRACTION, d) for d in DATASETS} <= searched
    assert all(SEARCH_TRIALS[d] >= (15 if d in ("human", "cnae9") else 40) for d in DATASETS)


# -- read once, and again when it has changed ---------------------------------------------------------------------


def test_reading_notices_every_change_of_a_file(stored, tmp_path):
    path = tmp_path / "runs.csv"
    stored.head(3).to_csv(path, index=False)
    assert len(load_results(tmp_path)) == 3
    mine = load_results(tmp_path)
    mine["acc"] = 0.0  # what a caller does to its own table is its own affair
    assert load_results(tmp_path)["acc"].tolist() == stored["acc"].head(3).tolist()
    results.run_store(tmp_path).append(stored.iloc[3].to_dict())
    assert len(load_results(tmp_path)) == 4
    text = path.read_text()
    path.write_text(text.replace(stored["dataset"].iloc[0], "x" * len(stored["dataset"].iloc[0])))  # as long as before
    assert load_results(tmp_path)["dataset"].str.fullmatch("x+").any()


def test_trials_and_their_runs_are_read_anew_when_either_file_changes(stored, tmp_path):
    search = Search("PBN", "letter", "known")
    path = results.search_path(search, tmp_path)
    path.parent.mkdir()
    lines = results.search_path(search).read_text().splitlines(keepends=True)
    path.write_text("".join(lines))
    runs = stored[(stored["table"] == CORRELATION) & (stored["dataset"] == "letter") & (stored["method"] == "PBN")]
    runs.to_csv(tmp_path / "runs.csv", index=False)
    both = hidden_and_novel_ari("PBN", "letter", tmp_path)
    load_trials(search, tmp_path)["params"].iloc[0].clear()
    assert load_trials(search, tmp_path)["params"].iloc[0]
    runs.iloc[1:].to_csv(tmp_path / "runs.csv", index=False)
    assert len(hidden_and_novel_ari("PBN", "letter", tmp_path)) == len(both) - 1
    path.write_text("".join(lines[:-1]))  # the last trial has lost a fold
    assert len(load_trials(search, tmp_path)) == 39
    assert len(hidden_and_novel_ari("PBN", "letter", tmp_path)) == len(both) - 2


def test_reading_results_imports_neither_torch_nor_scikit_learn():
    code = "import sys; from ncdlib.evidence import load_results; load_results(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "sklearn", "matplotlib", "requests"} & set(done.stdout.split())


# -- beside the paper -------------------------------------------------------------------------------------------


def test_the_comparison_has_every_figure_of_the_paper():
    cells = compare_with_paper()
    of_paper = cells[cells["paper"].notna()].reset_index(drop=True)
    assert of_paper["paper"].tolist() == paper_results()["value"].tolist()
    assert set(cells.loc[cells["paper"].isna(), "method"]) == {declared.TOP_K_AS_FRACTION}


def test_the_comparison_shows_means_of_runs_in_percent(tmp_path, monkeypatch):
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    for seed, acc in enumerate([0.5, 0.7]):
        row = dict.fromkeys(RUN_COLUMNS) | {"table": "clust", "dataset": "letter", "source": "original"}
        row |= {"method": "k-means", "setting": "known", "params_from": "none", "variant": "", "seed": seed, "acc": acc}
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


def test_every_table_is_shown_where_it_says():
    for label, table in TABLES.items():
        chapter = ROOT / "book" / f"{table.chapter}.ipynb"
        assert table.anchor in chapter.read_text(), label
    assert {e.table for e in declared.experiment_list()} | set(paper_results()["table"]) <= set(TABLES)
