"""What the paper's own tables, files and text answer: exactly, with no run of ours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import ncdlib
from ncdlib.datasets import DatasetInfo
from ncdlib.evidence.claims import centroids
from ncdlib.evidence.claims.claim import FAILS, HOLDS, IN_PART, INSIDE_PAPER, ClaimList, Finding
from ncdlib.evidence.claims.rules import names_of, rule
from ncdlib.evidence.claims.view import ROUNDING, View, mean_of
from ncdlib.evidence.paper import DATASETS, PAPER_DATA, PAPER_NAME_OF, TABLES, paper_results, published_hyperparameters
from ncdlib.evidence.results import results_folder

claims = ClaimList("ncd", "Section 7.2.1", INSIDE_PAPER)


def _exact(right: bool) -> str:
    """Judge arithmetic, which is right or wrong."""
    return HOLDS if right else FAILS


@claims.add(
    "printed-averages",
    "Every printed average is the mean of its column.",
    place="Sections 7.2.1 and 7.2.2, Appendices B and E",
)
def _printed_averages(view: View) -> Finding:
    wrong, n = [], 0
    for row in paper_results().query("dataset == 'average'").itertuples():
        n += 1
        right = view.average(row.table, row.method, DATASETS).value
        if abs(right - row.value) > 0.1:
            wrong.append(f"{row.method} in {TABLES[row.table].number}: printed {row.value:.1f}, is {right:.1f}")
    text = f"{n - len(wrong)} of {n} are right; " + ("; ".join(wrong) or "none is wrong")
    return Finding(_exact(not wrong), text, f"{n - len(wrong)} of {n} right")


_PRINTED_LEADS = [
    ("ncd", "PBN", "Baseline", 21.6),
    ("ncd", "PBN", "TabularNCD", 12.9),
    ("ncd", "PBN", "NCD SC", 1.0),
    ("ncd_k_est", "PBN", "Baseline", 17.6),
    ("ncd_k_est", "PBN", "NCD SC", 18.8),
    ("ncd_k_est", "PBN", "TabularNCD", 16.3),
    ("final_table_nmi", "PBN", "Baseline", 23.5),
    ("final_table_nmi", "PBN", "NCD SC", 8.6),
    ("final_table_nmi", "PBN", "TabularNCD", 13.5),
    ("final_table_ari", "PBN", "Baseline", 24.5),
    ("final_table_ari", "PBN", "NCD SC", 12.4),
    ("final_table_ari", "PBN", "TabularNCD", 17.5),
    ("pbn_sc", "SC PBN default", "KM PBN", 1.1),
    ("pbn_sc", "SC PBN full opt", "KM PBN", -4.1),
]


@claims.add(
    "printed-leads",
    "The leads of PBN and of its variants given in the text follow from the tables.",
    place="Sections 7.2.1 and 7.2.2, Appendices B and E",
)
def _printed_leads(view: View) -> Finding:
    wrong = []
    for table, method, rival, printed in _PRINTED_LEADS:
        right = mean_of(view.lead((table, method), (table, rival), d) for d in DATASETS).value
        if abs(right - printed) > ROUNDING:
            wrong.append(f"{method} over {rival} in {TABLES[table].number}: printed {printed:.1f}, is {right:.1f}")
    n = len(_PRINTED_LEADS)
    text = f"{n - len(wrong)} of {n} follow; " + ("; ".join(wrong) or "none is wrong")
    return Finding(_exact(not wrong), text, f"{n - len(wrong)} of {n} follow")


def _printed(table: str, method: str, dataset: str, column: str = "value") -> float:
    rows = paper_results()
    row = rows[(rows["table"] == table) & (rows["method"] == method) & (rows["dataset"] == dataset)]
    return float(row[column].item())


def _lower_on(datasets: list[str], right: bool) -> Finding:
    text = f"printed means: lower on {len(datasets)}: {names_of(datasets)}"
    return Finding(_exact(right), text, f"lower on {len(datasets)} of {len(DATASETS)}")


@claims.add("printed-never-worse", "NCD k-means is never worse than k-means, by the printed means.", table="clust")
def _printed_never_worse(view: View) -> Finding:
    worse = [d for d in DATASETS if _printed("clust", "NCD k-means", d) < _printed("clust", "k-means", d)]
    return _lower_on(worse, right=not worse)


@claims.add("printed-once-worse", "NCD SC is only once worse than SC, by the printed means.", table="clust")
def _printed_once_worse(view: View) -> Finding:
    worse = [d for d in DATASETS if _printed("clust", "NCD SC", d) < _printed("clust", "SC", d)]
    return _lower_on(worse, right=len(worse) == 1)


@claims.add("printed-same-cell", "NCD SC has the same figures in Tables 3 and 4.")
def _same_cell_twice(view: View) -> Finding:
    different = [
        f"{PAPER_NAME_OF[d]} ± {_printed('clust', 'NCD SC', d, 'std')} and ± {_printed('ncd', 'NCD SC', d, 'std')}"
        for d in DATASETS
        if any(_printed("clust", "NCD SC", d, c) != _printed("ncd", "NCD SC", d, c) for c in ("value", "std"))
    ]
    return Finding(
        _exact(not different), "different: " + ("; ".join(different) or "none"), f"{len(different)} different"
    )


@claims.add("printed-74", "NCD SC falls from 74.3 %.", place="Section 7.2.2")
def _falls_from_74(view: View) -> Finding:
    printed = _printed("ncd", "NCD SC", "average")
    return Finding(_exact(printed == 74.3), f"the text says 74.3, the table {printed:.1f}", f"{printed:.1f} %")


@claims.add(
    "printed-greatest-lead",
    "PBN's printed leads are all greater with k estimated than with k known.",
    place="Section 7.2.2",
    table="ncd_k_est",
)
def _greatest_lead_printed(view: View) -> Finding:
    leads = {}
    for rival in ("Baseline", "NCD SC", "TabularNCD"):
        leads[rival] = [
            _printed(table, "PBN", "average") - _printed(table, rival, "average") for table in ("ncd", "ncd_k_est")
        ]
    smaller = [rival for rival, (known, estimated) in leads.items() if estimated <= known]
    text = "; ".join(f"over {r} {known:.1f} known, {est:.1f} estimated" for r, (known, est) in leads.items())
    return Finding(_exact(not smaller), text, f"greater over {len(leads) - len(smaller)} of {len(leads)}")


@rule
def _known_centroids_always_worse_printed(rival: str, view: View) -> Finding:
    better = [
        d
        for d in DATASETS
        if _printed(centroids.TABLE, centroids.BOTH_ON_ALL, d) >= _printed(centroids.TABLE, rival, d)
    ]
    short = f"worse on {len(DATASETS) - len(better)} of {len(DATASETS)}"
    return Finding(_exact(not better), f"printed means: not worse on {names_of(better)}", short)


claims.add(
    "printed-known-centroids",
    "Updating the known centroids, too, is always worse than the novel ones only, on unlabelled rows, by "
    "the printed means.",
    _known_centroids_always_worse_printed(centroids.NOVEL_ONLY),
    place="Appendix G",
    table=centroids.TABLE,
)

claims.add(
    "printed-known-centroids-like-for-like",
    "Updating the known centroids, too, is always worse than the novel ones only, both on all rows, by "
    "the printed means.",
    _known_centroids_always_worse_printed(centroids.NOVEL_ON_ALL),
    place="Appendix G",
    table=centroids.TABLE,
)


@claims.add(
    "printed-latent-range",
    "The tuned latent sizes lie in the range searched, [5, d].",
    place="Appendix D",
    table="hyperparameters",
)
def _latent_sizes_in_range(view: View) -> Finding:
    table = published_hyperparameters().query("parameter == 'latent_dim' and number_of_classes == 'estimated'")
    n_features = PAPER_DATA["features"]
    outside = [
        f"{row.method} on {PAPER_NAME_OF[row.dataset]}: {row.value:.0f} of at most {n_features[row.dataset]}"
        for row in table.itertuples()
        if not 5 <= row.value <= n_features[row.dataset]
    ]
    return Finding(_exact(not outside), "outside: " + ("; ".join(outside) or "none"), f"{len(outside)} outside")


@claims.add(
    "published-dropout",
    "On Pendigits TabularNCD has one result in Tables 4 and 5: its published values are those of known k.",
    place="Authors' files, Appendix D",
    table="hyperparameters",
)
def _same_hyperparameters_on_pendigits(view: View) -> Finding:
    table = published_hyperparameters().query("method == 'TabularNCD' and dataset == 'pendigits'")
    wide = table.pivot_table(index="parameter", columns="number_of_classes", values="value").dropna()
    different = wide[~np.isclose(wide["known"], wide["estimated"], rtol=1e-3)]
    text = "; ".join(f"{row.Index}: {row.known} known, {row.estimated} estimated" for row in different.itertuples())
    return Finding(_exact(different.empty), text or "all are the same", f"{len(different)} different")


@claims.add("four-against-seven", "PBN has 4 hyperparameters, TabularNCD 7.", table="hyperparameters")
def _number_of_hyperparameters(view: View) -> Finding:
    table = published_hyperparameters().query("number_of_classes == 'known' and dataset == 'letter'")
    n = table.groupby("method").size()
    text = ", ".join(f"{method} {count}" for method, count in n.items())
    return Finding(_exact((n["PBN"], n["TabularNCD"]) == (4, 7)), text, f"{n['PBN']} and {n['TabularNCD']}")


@claims.add(
    "tangled-penalised",
    "The score on hidden classes penalises hidden classes that are tangled with novel ones, since both "
    "are clustered together.",
    place="Section 4",
    table="kfold",
    about="Algorithm 1",
)
def _tangled_is_penalised(view: View) -> Finding:
    hidden = np.repeat([0, 1], 20)  # the score sees the rows of two hidden classes only, whoever shares their clusters
    shared = adjusted_rand_score(hidden, hidden)  # each class whole, in one cluster with a whole novel class
    torn = adjusted_rand_score(hidden, np.tile([0, 1], 20))  # each class halved between two such clusters
    text = f"each whole in one cluster with a novel class {shared:.2f}, as if apart; each torn between two {torn:.2f}"
    n_penalised = sum(score < 1 for score in (shared, torn))
    return Finding(
        (FAILS, IN_PART, HOLDS)[n_penalised], f"ARI on two hidden classes: {text}", f"{shared:.2f} and {torn:.2f}"
    )


@rule
def _about_half(what: str, share_of: Callable[[DatasetInfo], float], view: View) -> Finding:
    """Ask whether a share of the classes is between 40 and 60 % on every data set."""
    share = {d: share_of(ncdlib.DATASETS[d]) for d in DATASETS}
    text = ", ".join(f"{PAPER_NAME_OF[d]} {s:.0%}" for d, s in share.items())
    half = [0.4 <= s <= 0.6 for s in share.values()]
    return Finding(_exact(all(half)), f"{what}: {text}", f"on {sum(half)} of {len(half)}")


def _share_novel(info: DatasetInfo) -> float:
    return len(info.novel_classes) / (len(info.known_classes) + len(info.novel_classes))


claims.add(
    "about-half-novel",
    "About half of the classes are novel.",
    _about_half("novel classes of all", _share_novel),
    place="Section 7.1",
    table="kfold_splits",
)


def _share_hidden(info: DatasetInfo) -> float:
    return info.n_hidden / len(info.known_classes)


claims.add(
    "about-half-hidden",
    "In each fold about half of the known classes are hidden.",
    _about_half("hidden classes of the known", _share_hidden),
    place="Section 4",
    table="kfold_splits",
    about="Algorithm 1",
)


@claims.add("seventy-thirty", "Data without a given split are split 70 / 30.", place="Section 7.1", table="data")
def _seventy_thirty(view: View) -> Finding:
    share = PAPER_DATA["test"] / (PAPER_DATA["novel"] + PAPER_DATA["test"])
    own_split = share[["letter", "mfeat", "cnae9"]]  # UCI splits human, pendigits, optdigits; census is capped
    wrong = [d for d, s in own_split.items() if abs(s - 0.3) > 0.03]
    text = ", ".join(f"{PAPER_NAME_OF[d]} {s:.0%}" for d, s in own_split.items())
    right = len(own_split) - len(wrong)
    return Finding(_exact(not wrong), f"novel rows for testing: {text}", f"on {right} of {len(own_split)}")


def _n_features(view: View, dataset: str) -> int:
    """Count the columns of the data as we read them: one for each attribute of the file."""
    return pd.read_csv(results_folder(view.folder) / "datasets.csv", index_col="name").loc[dataset, "features"]


@claims.add("one-hot", "Categorical features are one-hot encoded.", place="Section 7.1", table="data")
def _one_hot_encoded(view: View) -> Finding:
    ours, printed = _n_features(view, "census"), PAPER_DATA.loc["census", "features"]
    return Finding(
        _exact(printed > ours),
        f"all attributes of Census are categories; features printed {printed}, columns of the file {ours}",
        f"{printed} features",
    )


@claims.add("features-of-mfeat", "m feat has 515 features.", place="Section 7.1", table="data")
def _features_of_mfeat(view: View) -> Finding:
    ours = _n_features(view, "mfeat")
    printed = PAPER_DATA.loc["mfeat", "features"]
    largest = published_hyperparameters().query("dataset == 'mfeat' and parameter == 'latent_dim'")["value"].max()
    text = (
        f"printed {printed}; the file mfeat-fac without its first column has {ours}; largest tuned latent {largest:.0f}"
    )
    return Finding(_exact(ours == printed), text, f"{printed}; the file {ours}")
