"""The peers that the paper left out: measured by one protocol, averaged, and our statements about them judged."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import ncdlib
from ncdlib.evidence import beside_peers, beyond, load_results, measure, paper_results, peers, plan, statements
from ncdlib.evidence import experiments as declared
from ncdlib.evidence.beside_peers import AVERAGES, ORIGINALS, PBN_PRINTED, PBN_PUBLISHED
from ncdlib.evidence.experiments import (
    BEYOND,
    K_MEANS,
    LEIDEN,
    METRIC_K_MEANS,
    METRIC_NCD,
    MIXTURE,
    OTHER_TABLES,
    UMAP_HDBSCAN,
    Experiment,
)
from ncdlib.evidence.paper import DATASETS
from ncdlib.evidence.results import RUN_COLUMNS, RUN_KEY

OURS = [e for e in declared.experiment_list() if e.table in BEYOND.values()]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Two runs of each method and setting on digits, in a folder of their own."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        tiny = [replace(e, datasets=("digits",), runs=2) for e in OURS]
        patch.setattr(declared, "experiment_list", lambda: tiny)
        patch.setattr(declared, "search_list", lambda: [])
        jobs = plan.pending_jobs(folder=folder)
        assert measure.reproduce(jobs, folder=folder, verbose=False) == 2 * len(OURS)
        assert plan.pending_jobs(folder=folder) == []
    return folder


def test_every_method_is_measured_in_both_settings(measured):
    runs = load_results(measured)
    assert not runs.duplicated(list(RUN_KEY)).any()
    assert runs[["acc", "nmi", "ari", "k", "seconds"]].notna().all().all()
    assert runs["ncdlib"].eq(ncdlib.__version__).all()
    by_setting = runs.groupby("setting")["method"].agg(set)
    assert by_setting["estimated"] - by_setting["known"] == {UMAP_HDBSCAN}
    assert runs[runs["setting"] == "known"]["k"].eq(5).all()
    assert set(runs[runs["setting"] == "estimated"]["k"]) > {5}  # some count otherwise
    assert runs["acc"].gt(0.3).all(), runs[["method", "setting", "acc"]]


def test_digits_are_parted_well_on_the_neighbour_graph(measured):
    table = beyond(measured).set_index(["method", "setting"])
    assert table.loc[(METRIC_NCD, "known"), "acc"] > 95
    assert table.loc[(LEIDEN, "known"), "acc"] > 95
    assert table.loc[(METRIC_NCD, "known"), "true_k"] == 5


def labels_of(experiment: Experiment, problem, monkeypatch) -> list[list[int]]:
    seen = []
    monkeypatch.setattr(peers, "scores_of", lambda _, labelings: seen.extend(map(list, labelings)) or {})
    for _ in experiment.measure(problem, {}, experiment.setting, [0, 1]):
        pass
    return seen


@pytest.mark.parametrize(
    "experiment",
    [e for e in OURS if "UMAP" not in e.method and e.method != MIXTURE],
    ids=lambda e: f"{e.method}, k {e.setting}",
)
def test_novel_labels_and_test_rows_enter_nothing_but_the_score(experiment, monkeypatch):
    # Classes run into each other, so that a row more in the fit shows.
    problem = ncdlib.make_ncd_blobs(4, 3, n_samples=300, cluster_std=20.0, random_state=0)
    first = labels_of(experiment, problem, monkeypatch)
    rng = np.random.default_rng(0)
    shuffled = [y.copy() for y in (problem.y_true, problem.y_test)]
    for y in shuffled:
        novel = np.isin(y, problem.novel_classes)
        y[novel] = rng.permutation(y[novel])
    assert labels_of(experiment, replace(problem, y_true=shuffled[0], y_test=shuffled[1]), monkeypatch) == first
    half = len(problem.y_test) // 2
    fewer = replace(problem, X_test=problem.X_test[:half], y_test=problem.y_test[:half])
    kept = np.isin(problem.y_test[:half], problem.novel_classes).sum()
    assert labels_of(experiment, fewer, monkeypatch) == [labels[:kept] for labels in first]


def test_rows_are_capped_and_drawn_anew_for_each_seed():
    X = np.arange(40).reshape(20, 2)
    assert list(peers.some_rows(X, 30, 0)) == list(range(20))
    draws = [tuple(peers.some_rows(X, 5, seed)) for seed in range(5)]
    assert {len(set(draw)) for draw in draws} == {5} and len(set(draws)) > 1


def test_noise_is_a_cluster_to_the_score_and_none_to_the_count():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.1, size=(50, 2)) for c in (0, 5)] + [rng.uniform(-20, 20, size=(12, 2))])
    found = peers.hdbscan(peers.Space(X, X), None, 0)
    assert found.k == 2 and set(found.labels) == {-1, 0, 1}


def test_wide_rows_get_diagonal_gaussians():
    X = np.random.default_rng(0).normal(size=(60, 30))
    assert peers.gaussian_mixture(peers.Space(X, X), 2, 0).k == 2
    assert peers._mixture(X, 2, "diag", 0).covariances_.shape == (2, 30)


def test_without_umap_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    peers._umap.cache_clear()
    with pytest.raises(ImportError, match="pip install umap-learn"):
        peers.umap_of_columns(ncdlib.make_ncd_blobs(random_state=3), 0)


def test_a_table_that_the_paper_does_not_have_has_an_estimate_of_its_time():
    job = plan.Job(OURS[0], "steel", (0, 1))
    assert plan.estimated_seconds(job, load_results().iloc[:0]) > 0


# -- the table --------------------------------------------------------------------------------------------------------


def stored_runs(folder, *cells):
    """Write three runs for each (setting, method, data set, accuracy); their scores are 0.01 apart."""
    rows = [
        dict.fromkeys(RUN_COLUMNS, "")
        | {"table": BEYOND[setting], "dataset": dataset, "method": method, "setting": setting, "params_from": "none"}
        | {"seed": seed, "acc": acc + 0.01 * (seed - 1), "nmi": 0.5, "ari": 0.25, "k": 4 + seed, "seconds": 2.0}
        for setting, method, dataset, acc in cells
        for seed in range(3)
    ]
    pd.DataFrame(rows).to_csv(folder / "runs.csv", index=False)
    return folder


def everywhere(method, acc, setting="known", datasets=(*DATASETS, *OTHER_TABLES)):
    return [(setting, method, d, acc) for d in datasets]


def test_averages_are_those_computed_by_hand(tmp_path):
    accs = dict(zip(DATASETS, (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3), strict=True))
    stored_runs(tmp_path, *(("known", METRIC_NCD, d, acc) for d, acc in accs.items()))
    cells = beyond(tmp_path).set_index(["method", "dataset"]).loc[METRIC_NCD]
    assert list(cells.index) == [*DATASETS, "average", "average of the originals"]  # the other tables are not there
    assert cells.loc["letter", ["acc", "k", "true_k", "runs", "name"]].tolist() == [
        pytest.approx(80),
        5,
        7,
        3,
        "Letter",
    ]
    assert cells.loc["human", "name"] == "Human*" and cells.loc["census", "name"] == "Census*"
    assert cells.loc["letter", "acc_se"] == pytest.approx(1 / np.sqrt(3))
    assert cells.loc["letter", "acc_std"] == pytest.approx(np.sqrt(2 / 3))
    assert cells.loc["average", "acc"] == pytest.approx(60)
    assert cells.loc["average", "acc_se"] == pytest.approx(np.sqrt(7 / 3) / 7)
    assert cells.loc["average of the originals", "acc"] == pytest.approx(100 * (0.8 + 0.7 + 0.5 + 0.4 + 0.3) / 5)
    assert cells.loc["average", "ari"] == pytest.approx(25) and cells.loc["average", "seconds"] == pytest.approx(2)


def test_pbn_is_shown_as_printed_and_as_measured():
    table = beyond()
    averages = table[table["dataset"] == "average"].set_index(["method", "setting"])["acc"]
    printed = paper_results().query("method == 'PBN' and dataset == 'average' and metric == 'ACC'").set_index("table")
    assert averages[PBN_PRINTED, "known"] == pytest.approx(printed.loc["ncd", "value"], abs=0.06)
    assert averages[PBN_PRINTED, "estimated"] == pytest.approx(printed.loc["ncd_k_est", "value"], abs=0.06)
    cells = ncdlib.evidence.compare_with_paper()
    ours = cells.query("table == 'ncd' and metric == 'ACC' and method == 'PBN' and dataset == 'average'")["published"]
    assert averages[PBN_PUBLISHED, "known"] == pytest.approx(ours.item())


def test_every_average_of_what_is_stored_is_the_mean_of_its_parts():
    table = beyond()
    for (setting, method), cells in table.groupby(["setting", "method"]):
        cells = cells.set_index("dataset")["acc"]
        for name in set(AVERAGES) & set(cells.index):
            assert cells[name] == pytest.approx(cells[list(AVERAGES[name])].mean()), (setting, method)


# -- statements -------------------------------------------------------------------------------------------------------


def verdicts(folder, setting="known"):
    judged = statements(folder)
    return judged[judged["setting"] == setting].set_index("id")


def test_statements_follow_the_runs(tmp_path):
    stored_runs(
        tmp_path,
        *everywhere(METRIC_NCD, 0.95),
        *everywhere(METRIC_K_MEANS, 0.5),
        *everywhere(K_MEANS, 0.6),
    )
    judged = verdicts(tmp_path)
    assert judged.loc["ahead-of-pbn-printed", "verdict"] == "holds"
    assert judged.loc["ahead-of-pbn-printed", "cells"] == "beyond / MetricNCD; ncd / PBN"
    assert judged.loc["nowhere-far-behind-pbn", "verdict"] == "holds"
    assert judged.loc["metric-with-k-means", "verdict"] == "does not hold"
    assert "KnownClassMetric + k-means 50.0, k-means 60.0: -10.0" in judged.loc["metric-with-k-means", "numbers"]
    assert judged.loc["ahead-of-peers", "verdict"] == "cannot be judged here"
    assert "UMAP + k-means on Human*" in judged.loc["ahead-of-peers", "missing"]
    assert verdicts(tmp_path, "estimated")["verdict"].eq("cannot be judged here").all()


def test_a_peer_that_is_even_or_ahead_shows(tmp_path):
    known = [p for p in declared.PEERS if p != UMAP_HDBSCAN]

    def with_leiden_at(acc):
        rivals = [cell for p in known for cell in everywhere(p, acc if p == LEIDEN else 0.6)]
        return verdicts(stored_runs(tmp_path, *everywhere(METRIC_NCD, 0.8), *rivals))["verdict"]

    assert with_leiden_at(0.7)["ahead-of-peers"] == "holds"
    assert with_leiden_at(0.801)["ahead-of-peers"] == "holds in part"
    assert with_leiden_at(0.83)["ahead-of-peers"] == "does not hold"
    assert with_leiden_at(0.83)["ahead-of-peers-elsewhere"] == "does not hold"
    assert with_leiden_at(0.83)["nowhere-far-behind-peers"] == "holds"
    assert with_leiden_at(0.87)["nowhere-far-behind-peers"] == "does not hold"


def test_one_set_far_behind_is_named(tmp_path):
    cells = [("known", METRIC_NCD, d, 0.2 if d == "census" else 0.95) for d in DATASETS]
    row = verdicts(stored_runs(tmp_path, *cells)).loc["nowhere-far-behind-pbn"]
    assert row["verdict"] == "holds in part" and row["without_variants"] == "holds"
    assert "Census* (PBN, as printed -42." in row["numbers"]


def test_too_few_runs_settle_nothing(tmp_path):
    stored_runs(tmp_path, *everywhere(METRIC_NCD, 0.95))
    runs = pd.read_csv(tmp_path / "runs.csv").query("not (dataset == 'letter' and seed == 2)")
    runs.to_csv(tmp_path / "runs.csv", index=False)
    assert verdicts(tmp_path).loc["ahead-of-pbn-printed", "missing"] == "MetricNCD on Letter, k known"


def test_every_statement_has_its_own_name():
    assert len({s.id for s in beside_peers.STATEMENTS}) == len(beside_peers.STATEMENTS)
    assert set(ORIGINALS) < set(DATASETS)
