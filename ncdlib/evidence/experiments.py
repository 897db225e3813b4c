"""Every table and figure of the paper as a list of experiments and searches: what runs, on which data, how often.

What only declares and reads needs no torch: estimators are taken from `ncdlib`, which imports them when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

import ncdlib
from ncdlib.evidence import peers, protocols
from ncdlib.evidence.paper import DATASETS, FEATURES_METHOD, INDEX_NAMES, published_params

if TYPE_CHECKING:
    from ncdlib.problem import NCDProblem

RUNS = 10
SEARCH_TRIALS = {name: 40 for name in DATASETS} | {"human": 15, "cnae9": 15}
SMALL = ("pendigits", "mfeat", "optdigits", "census", "letter")  # what is cheap enough for side questions
CHANGED_IN = {"TabularNCD": "0.1.1"}  # the version that last changed a method's numbers: older rows are stale
OTHER_TABLES = ("steel", "vowel", "vehicle", "segment", "digits")  # on board, and not the paper's
N_SHARES = range(1, 26, 2)
N_COMBINATIONS = 5
DEEP_METHODS = ("PBN", "Baseline", "TabularNCD")
SIDE_QUESTIONS = (  # measured last
    "hidden_score",
    "choices",
    "letter_splits",
    "census_splits",
    "perf_wrt_share",
    "beyond",
    "beyond_k_est",
)

FULL_OPT = "SC PBN full opt"  # scored with k known only, as its table is: each spectral clustering takes seconds
NCD_SC = "NCD SC"  # tunes itself on the known classes (Algorithm 3), without hiding any
TOP_K_AS_FRACTION = "TabularNCD, mended"
"""TabularNCD with ``top_k`` as the fraction of the paper's text; the authors' code takes the same number as percent."""


@lru_cache(maxsize=16)
def load_problem(dataset: str) -> NCDProblem:
    """Return the usual problem of a data set, read once in a process: what is computed from it can be kept, too."""
    return ncdlib.load_dataset(dataset)


@dataclass(frozen=True)
class Experiment:
    """Some runs of one method in one setting, on one or several data sets.

    Attributes
    ----------
    table : str
        The paper's label of the table or figure that it belongs to.
    method : str
        The method's name in that table.
    measure : callable
        One of `protocols`.
    setting : {"known", "estimated"}
        Whether the number of novel classes is given.
    params_from : {"none", "published", "searched"}
        Where the hyperparameters come from.
    tuned_as : str
        The method (or search) whose hyperparameters are used.
    change : dict
        What differs from the usual protocol, for the questions that the paper leaves open.
    variant : str
        Which of several problems made from one data set.
    problem : callable
        From the name of a data set to the problem.
    rows : tuple of str
        The method names that its rows carry, the last one written last, where they are not `method`.
    """

    table: str
    method: str
    measure: Callable[..., Iterator[dict[str, Any]]]
    setting: str = "known"
    params_from: str = "none"
    tuned_as: str = ""
    change: dict[str, Any] = field(default_factory=dict)
    variant: str = ""
    datasets: Sequence[str] = DATASETS
    runs: int = RUNS
    problem: Callable[[str], NCDProblem] = load_problem
    rows: tuple[str, ...] = ()

    @property
    def row_methods(self) -> tuple[str, ...]:
        """The method names that its rows carry."""
        return self.rows or (self.method,)

    @property
    def name(self) -> str:
        """What it is called in plans."""
        parts = (self.table, self.method, self.setting, self.params_from, self.variant)
        return " / ".join(part for part in parts if part)


@dataclass(frozen=True)
class Search:
    """A hidden-class search on one data set; TabularNCD is trained anew for each setting, the others once for both."""

    method: str  # a name of SEARCHES, or NCD_SC
    dataset: str
    setting: str

    @property
    def name(self) -> str:
        """What it is called in plans."""
        return f"search / {self.method} / {self.setting}"

    @property
    def file_name(self) -> str:
        """The file of its trainings, in ``results/search/``."""
        slug = self.method.lower().replace(", ", "-").replace(" ", "-")
        return f"{self.dataset}_{slug}{'_' + self.setting if trained_for_one_setting(self.method) else ''}.csv"


def trained_for_one_setting(method: str) -> bool:
    """Tell whether a search is done anew for each setting."""
    return method.startswith("TabularNCD") or method == NCD_SC


def _space_of(method: str) -> Callable[[int], dict[str, Any]]:
    """Return the search space of one of our estimators; it is imported only when it is searched."""
    return lambda n_features: getattr(ncdlib, method).search_space(n_features)


def _pbn_sc_space(n_features: int) -> dict[str, Any]:
    """Tune PBN and its spectral clusterer together: six hyperparameters."""
    from scipy import stats

    clusterer = {"s_min": stats.uniform(0.001, 0.998), "n_components": stats.randint(1, 201)}
    return ncdlib.PBN.search_space(n_features) | clusterer


def _top_k_in_percent_space(n_features: int) -> dict[str, Any]:
    """Search top_k over the paper's range [0, 1] in the unit of the authors' code: percent."""
    from scipy import stats

    return ncdlib.TabularNCD.search_space(n_features) | {"top_k": stats.uniform(0, 0.01)}


SEARCHES: dict[str, tuple[str, dict[str, Any], Callable[[int], dict[str, Any]]]] = {
    # name: estimator, its fixed parameters, its search space
    "PBN": ("PBN", {}, _space_of("PBN")),
    "Baseline": ("Baseline", {}, _space_of("Baseline")),
    "TabularNCD": ("TabularNCD", {}, _top_k_in_percent_space),
    TOP_K_AS_FRACTION: ("TabularNCD", {}, _space_of("TabularNCD")),
    FULL_OPT: ("PBN", {"clusterer": "spectral", "sigma_rule": "authors"}, _pbn_sc_space),
}


def search_list() -> list[Search]:
    """Return all searches, in the order in which they are worth having."""
    light, heavy = SMALL, tuple(name for name in DATASETS if name not in SMALL)
    both = ("known", "estimated")
    return [
        *(Search(NCD_SC, d, setting) for d in DATASETS for setting in both),
        *(Search(method, d, "known") for d in light for method in ("PBN", "Baseline")),
        *(Search(TOP_K_AS_FRACTION, d, setting) for d in light for setting in both),
        *(Search("TabularNCD", d, setting) for d in light for setting in both),
        *(Search(method, d, "known") for d in heavy for method in ("PBN", "Baseline")),
        *(Search(TOP_K_AS_FRACTION, d, setting) for d in heavy for setting in both),
        *(Search(FULL_OPT, d, "known") for d in DATASETS),
    ]


# -- experiments ------------------------------------------------------------------------------------------------------


def experiment_list() -> list[Experiment]:
    """Return all experiments, in the order in which they are worth having."""
    return [
        *_result_tables(),
        *_appendices(),
        *_scores_on_hidden_classes(),
        *_unreported_choices(),
        *_other_splits(),
        *_growing_share(),
        *_beyond_the_paper(),
    ]


def _published_and_searched(table: str, setting: str, method: str, measure: Callable) -> list[Experiment]:
    return [Experiment(table, method, measure, setting, source, method) for source in ("published", "searched")]


def _result_tables() -> list[Experiment]:
    """List tables clust (k known), ncd (k known), and ncd_k_est, final_table_nmi, final_table_ari (k estimated)."""
    deep, both = protocols.deep, _published_and_searched
    mended = deep("TabularNCD")
    return [
        Experiment("clust", "k-means", protocols.k_means),
        Experiment("clust", "NCD k-means", protocols.ncd_k_means),
        Experiment("clust", "SC", protocols.spectral),
        *both("clust", "known", "NCD SC", protocols.ncd_spectral),
        *(e for method in DEEP_METHODS for e in both("ncd", "known", method, deep(method))),
        *(e for method in DEEP_METHODS for e in both("ncd_k_est", "estimated", method, deep(method))),
        *both("ncd_k_est", "estimated", "NCD SC", protocols.ncd_spectral),
        Experiment("ncd", TOP_K_AS_FRACTION, mended, "known", "searched", TOP_K_AS_FRACTION),
        Experiment("ncd_k_est", TOP_K_AS_FRACTION, mended, "estimated", "searched", TOP_K_AS_FRACTION),
    ]


def _appendices() -> list[Experiment]:
    """List tables clust_results_different_convergence, silhouette_results and pbn_sc."""
    spectral = {"clusterer": "spectral", "sigma_rule": "authors"}
    pbn, latent = protocols.deep("PBN"), protocols.indices_in_latent_space
    indices = tuple(INDEX_NAMES.values())
    return [
        *(
            Experiment(
                "clust_results_different_convergence",
                f"update {label} centroids on labeled and unlabeled data",
                protocols.ncd_k_means,
                change={"update": update, "on": "all"},
            )
            for label, update in (("novel only", "novel"), ("known and novel", "known_and_novel"))
        ),
        Experiment("silhouette_results", "indices", latent, "known", "published", "PBN", runs=3, rows=indices),
        Experiment("silhouette_results", "features", protocols.silhouette_of_features, runs=3, rows=(FEATURES_METHOD,)),
        Experiment("pbn_sc", "SC PBN default", pbn, "known", "published", "PBN", change=spectral | {"s_min": 0.6}),
        Experiment("pbn_sc", FULL_OPT, pbn, "known", "searched", FULL_OPT, change=spectral),
    ]


def _scores_on_hidden_classes() -> list[Experiment]:
    """Ask what is not in the paper: does the score on hidden classes tell the published values from ours, or luck."""
    return [
        Experiment("hidden_score", method, protocols.hidden_score(method), "known", source, method, datasets=SMALL)
        for method in ("PBN", "Baseline")
        for source in ("published", "searched")
    ]


def _other_splits() -> list[Experiment]:
    """Split Letter and Census in other ways: the seeds of the paper's splits are not given."""
    plain = {"k-means": protocols.k_means, "SC": protocols.spectral}
    return [
        Experiment(
            f"{dataset}_splits",
            method,
            plain.get(method) or protocols.deep(method),
            "known",
            *(("published", method) if method in DEEP_METHODS else ("none", "")),
            variant=f"split {seed}",
            datasets=(dataset,),
            runs=5,
            problem=_other_split(seed),
        )
        for dataset, methods in (("letter", ("k-means", *DEEP_METHODS)), ("census", ("k-means", "SC", *DEEP_METHODS)))
        for seed in range(1, 5)
        for method in methods
    ]


def _other_split(seed: int) -> Callable[[str], NCDProblem]:
    return lambda name: ncdlib.load_dataset(name, random_state=seed)


def _growing_share() -> list[Experiment]:
    """List figure perf_wrt_share: more and more letters are novel."""
    plain = {"NCD k-means": protocols.ncd_k_means, "NCD SC": protocols.ncd_spectral}
    return [
        Experiment(
            "perf_wrt_share",
            method,
            plain.get(method) or protocols.deep(method),
            "known",
            *(("none", "") if method == "NCD k-means" else ("published", method)),
            variant=f"{n_novel} novel, combination {combination}",
            datasets=("letter",),
            runs=1,
            problem=share_problem(n_novel, combination),
        )
        for combination in range(N_COMBINATIONS)
        for n_novel in N_SHARES
        for method in (*plain, *DEEP_METHODS)
    ]


def share_problem(n_novel: int, combination: int) -> Callable[[str], NCDProblem]:
    """Draw Letter with a random combination of novel classes."""

    def make(name: str) -> NCDProblem:
        problem = load_problem(name)
        classes = [*problem.known_classes, *problem.novel_classes]
        rng = np.random.default_rng([n_novel, combination])
        return problem.with_novel(rng.choice(sorted(classes), size=n_novel, replace=False).tolist())

    return make


BEYOND = {"known": "beyond", "estimated": "beyond_k_est"}
"""Our own tables of what is not in the paper, k known and k estimated."""

METRIC_NCD, METRIC_K_MEANS, K_MEANS = "MetricNCD", "KnownClassMetric + k-means", "k-means"
UMAP_K_MEANS, UMAP_HDBSCAN = "UMAP + k-means", "UMAP + HDBSCAN"
MIXTURE, LEIDEN, UMAP_WITH_LABELS = "Gaussian mixture", "Leiden", "semi-supervised UMAP + k-means"
PEERS = (K_MEANS, UMAP_K_MEANS, MIXTURE, LEIDEN, UMAP_HDBSCAN, UMAP_WITH_LABELS)
"""What others would try first. HDBSCAN counts by itself: it is measured with k estimated only."""


def _beyond_the_paper() -> list[Experiment]:
    """List the peers that the paper left out, and ours, on its data sets and on the other tables on board."""
    measured_by = {
        METRIC_NCD: peers.metric_ncd,
        METRIC_K_MEANS: peers.peer(peers.metric, peers.k_means),
        K_MEANS: peers.peer(peers.columns, peers.k_means),
        UMAP_K_MEANS: peers.peer(peers.umap_of_columns, peers.k_means),
        UMAP_HDBSCAN: peers.peer(peers.umap_of_columns, peers.hdbscan),
        MIXTURE: peers.peer(peers.columns, peers.gaussian_mixture),
        LEIDEN: peers.peer(peers.columns, peers.leiden),
        UMAP_WITH_LABELS: peers.peer(peers.umap_with_known_classes, peers.k_means),
    }
    return [
        Experiment(table, method, measure, setting, datasets=(*DATASETS, *OTHER_TABLES))
        for method, measure in measured_by.items()
        for setting, table in BEYOND.items()
        if not (method == UMAP_HDBSCAN and setting == "known")
    ]


def _unreported_choices() -> list[Experiment]:
    """Change each choice that the paper's text leaves open, alone."""
    deep = protocols.deep

    def choice(
        method: str,
        label: str,
        measure: Callable,
        params_from: str = "published",
        setting: str = "known",
        **change: Any,
    ) -> Experiment:
        name, tuned_as = f"{method}: {label}", "" if params_from == "none" else method
        datasets = SMALL if method in DEEP_METHODS else DATASETS
        return Experiment("choices", name, measure, setting, params_from, tuned_as, change, datasets=datasets)

    return [
        choice("k-means", "chosen by unsquared distance", protocols.k_means_chosen_by_distance, params_from="none"),
        choice("NCD k-means", "drawn by squared distance", protocols.ncd_k_means, params_from="none", draw_power=2),
        choice("NCD k-means", "chosen by inertia", protocols.ncd_k_means, params_from="none", selection="inertia"),
        choice("SC", "sigma as in the text", protocols.spectral, params_from="none", sigma_rule="paper"),
        choice("SC", "embedding of scikit-learn", protocols.spectral_of_scikit_learn, params_from="none"),
        choice("NCD SC", "sigma as in the text", protocols.ncd_spectral, sigma_rule="paper"),
        choice(
            "NCD SC",
            "k estimated, novel rows clustered alone",
            protocols.ncd_spectral,
            setting="estimated",
            novel_alone=True,
        ),
        choice("PBN", "latent normalised for clustering", deep("PBN"), normalize_latent=True),
        choice("Baseline", "latent normalised for clustering", deep("Baseline"), normalize_latent=True),
        choice("PBN", "clusters of the train rows", deep("PBN", clusters_of="train rows")),
        choice("Baseline", "clusters of the train rows", deep("Baseline", clusters_of="train rows")),
        choice(
            FULL_OPT,
            "clusters of the train rows",
            deep("PBN", clusters_of="train rows"),
            params_from="searched",
            clusterer="spectral",
            sigma_rule="authors",
        ),
        choice("PBN", "reconstruction averaged over features", deep("PBN"), reconstruction="mean"),
        choice("PBN", "without the reconstruction", deep("PBN"), w=1.0),
        choice("PBN", "batches shuffled in each epoch", deep("PBN"), shuffle_batches=True),
        choice("TabularNCD", "batches shuffled in each epoch", deep("TabularNCD"), shuffle_batches=True),
        choice("TabularNCD", "published top_k as a fraction", deep("TabularNCD"), top_k_factor=100),
        choice("TabularNCD", "pre-trained for 50 epochs", deep("TabularNCD"), pretrain_epochs=50),
    ]


def params_of(experiment: Experiment, dataset: str, searched: Callable[[str, str, str], dict | None]) -> dict | None:
    """Return the hyperparameters of an experiment on a data set; None where its search is not finished."""
    params: dict[str, Any] | None = {}
    if experiment.params_from == "published":
        params = published_params(experiment.tuned_as, experiment.setting, dataset)
    elif experiment.params_from == "searched":
        params = searched(experiment.tuned_as, dataset, experiment.setting)
        if params is None:
            return None
    params = params | experiment.change
    if "top_k_factor" in params:
        params["top_k"] *= params.pop("top_k_factor")
    return params
