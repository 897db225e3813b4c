"""The paper's claims, each with a function that answers it from the measurements, and the verdict that follows.

The rules are the same for all claims:

A figure
    agrees with the paper's when it is within max(2 paper std, 3 points). An average over data sets, or a lead between
    two averages, has no std in the paper: 3 points. A lead that is right in its sign but further away is "holds in
    part"; so is one that is near but even where the paper's, over all seven data sets, is not. Near or far, a lead
    settled the other way fails.
An ordering
    of two methods on a data set is settled when the difference of their means is more than twice its standard error
    (from the spread of the runs) and more than half a point. Otherwise they are even. Over several data sets the
    differences are averaged, and their standard errors combined. Even where the paper has a winner is "holds in part".
A count
    ("never worse", "the best on four data sets") that misses the claimed one by a single data set is "holds in part".
    Where the data sets not measured yet could change the answer, it is not judged.
    The best method of a data set is the one with the highest mean, as in the paper's bold print.
Too little
    measured, that is less than three runs of a cell or less than five data sets of a comparison, is "cannot be
    judged here". Where five or six of the seven are there, a lead is compared with the paper's over the same ones.
    An estimated number of classes is the median of the runs there are, one being enough as in the paper.

What else a claim needs (half of a gain, a rank, a share of a curve) stands with its function below.

Every claim is judged up to three times: with the authors' published hyperparameters ("published"), with those of our
own hidden-class search ("searched"), and, where TabularNCD is concerned, with its ``top_k`` taken as the fraction that
the text describes and tuned by a search of its own ("mended"). The verdict is what these agree on; "holds in part"
where they do not. Claims that can be checked inside the paper are answered from its own tables, exactly: they hold or
they do not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import ncdlib
from ncdlib.evidence.experiments import MENDED
from ncdlib.evidence.paper import (
    DATASETS,
    PAPER_DATA,
    PAPER_NAME_OF,
    PAPER_NUMBER,
    paper_results,
    published_hyperparameters,
)
from ncdlib.evidence.runner import INDEX_NAMES
from ncdlib.evidence.store import FEATURES_METHOD, load_results, results_folder
from ncdlib.evidence.tables import METRIC_COLUMN, hidden_and_novel_ari, measured_as

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be judged here"
VERDICTS = (HOLDS, IN_PART, FAILS, UNKNOWN)

POINTS = 3.0  # a figure without std agrees within so many points
ROUNDING = 0.15  # the difference of two printed averages is exact within this
STANDARD_ERRORS = 2.0
SMALLEST_DIFFERENCE = 0.5  # of two means, in points; less is even whatever the standard error
MIN_RUNS = 3
MIN_DATASETS = 5
MIN_TRIALS = 12
VARIANTS = ("human", "census")
PAPER_RUNS = 10

NCD_METHODS = ("Baseline", "NCD SC", "TabularNCD", "PBN")
CLUSTERINGS = ("k-means", "NCD k-means", "SC", "NCD SC")
DEEP = ("PBN", "TabularNCD", "Baseline")
SHARE_METHODS = ("NCD k-means", "NCD SC", *DEEP)
CHOSEN_ALIKE = "k-means: chosen by unsquared distance"
_METRIC = {"final_table_nmi": "NMI", "final_table_ari": "ARI", "silhouette_results": "estimated k"}


class Finding(NamedTuple):
    """An answer: how it bears on the claim, and the numbers."""

    outcome: str
    text: str


class NotMeasured(Exception):
    """What a claim needs and `results/` does not hold."""


class Mean(NamedTuple):
    """A mean and its standard error."""

    value: float
    se: float = 0.0

    def minus(self, other: Mean) -> Mean:
        return Mean(self.value - other.value, float(np.hypot(self.se, other.se)))

    @property
    def sign(self) -> int:
        """1 or -1 where the value is settled, 0 where it is even."""
        even = abs(self.value) <= max(STANDARD_ERRORS * self.se, SMALLEST_DIFFERENCE)
        return 0 if even else int(np.sign(self.value))

    def __str__(self) -> str:
        return f"{self.value:+.1f} ± {self.se:.1f}"


def mean_of(values: Iterable[Mean]) -> Mean:
    values = list(values)
    se = np.sqrt(np.sum([v.se**2 for v in values])) / len(values)
    return Mean(float(np.mean([v.value for v in values])), float(se))


@dataclass
class View:
    """One way to look at the same tables: the paper's figures, or ours with one origin of the hyperparameters.

    It notes every cell that is asked for, so that the ledger can tell what a verdict rests on and what is missing.
    """

    name: str
    cells: dict[tuple[str, str, str, str], Mean]  # (table, metric, method, dataset)
    datasets: tuple[str, ...] = DATASETS
    folder: str | os.PathLike | None = None
    runs: pd.DataFrame | None = None
    substitutes: dict[str, str] = field(default_factory=dict)
    used: dict[tuple[str, str, str], None] = field(default_factory=dict)  # (table, method, dataset), in order
    missing: dict[tuple[str, str, str], None] = field(default_factory=dict)

    @property
    def tolerance(self) -> float:
        return ROUNDING if self.name == "paper" else POINTS

    def method(self, name: str) -> str:
        """The method that stands for this one here."""
        return self.substitutes.get(name, name)

    def mean(self, table: str, method: str, dataset: str, metric: str | None = None) -> Mean:
        metric, method = metric or _METRIC.get(table, "ACC"), self.method(method)
        self.used[table, method, dataset] = None
        try:
            return self.cells[table, metric, method, dataset]
        except KeyError:
            self.missing[table, method, dataset] = None
            raise NotMeasured(f"{method} on {PAPER_NAME_OF[dataset]} ({_number(table)})") from None

    def has(self, *cell: str) -> bool:
        try:
            return self.mean(*cell) is not None
        except NotMeasured:
            return False

    def measured(self, cells: Iterable[tuple[str, str]], at_least: int = MIN_DATASETS) -> list[str]:
        """The data sets on which all of these (table, method) are measured."""
        there = {cell: [d for d in self.datasets if self.has(*cell, d)] for cell in dict.fromkeys(cells)}
        found = [d for d in self.datasets if all(d in names for names in there.values())]
        if len(found) < at_least:
            counts = ", ".join(
                f"{self.method(method)} ({_number(table)}) {len(names)}"
                for (table, method), names in there.items()
                if len(names) < len(self.datasets)
            )
            raise NotMeasured(f"data sets measured, of {len(self.datasets)}: {counts}; all on {len(found)}")
        return found

    def average(self, table: str, method: str, datasets: Iterable[str]) -> Mean:
        return mean_of(self.mean(table, method, d) for d in datasets)

    def lead(self, cell: tuple[str, str], rival: tuple[str, str], dataset: str) -> Mean:
        return self.mean(*cell, dataset).minus(self.mean(*rival, dataset))


Judge = Callable[[View], Finding]


# -- kinds of claims --------------------------------------------------------------------------------------------------


def _number(table: str) -> str:
    """The paper's number of a table; what is not in the paper belongs to Chapter 15."""
    return PAPER_NUMBER.get(table, "Chapter 15")


def _names(datasets: Iterable[str]) -> str:
    return ", ".join(PAPER_NAME_OF[d] for d in datasets) or "none"


def _over(datasets: Sequence[str]) -> str:
    return f"{len(datasets)} data sets" + ("" if len(datasets) == len(DATASETS) else f" ({_names(datasets)})")


def _by_count(n_missed: int) -> str:
    return HOLDS if n_missed <= 0 else IN_PART if n_missed == 1 else FAILS


def _lead(cell: tuple[str, str], rival: tuple[str, str], points: float, view: View) -> Finding:
    """`cell` is `points` ahead of `rival` on average."""
    lead, compared_with, text = _leads(cell, rival, points, view)
    near = abs(lead.value - compared_with) <= view.tolerance
    if lead.sign == 0:
        paper = paper_view()
        even_there = mean_of(paper.lead(cell, rival, d) for d in DATASETS).sign == 0
        return Finding((HOLDS if even_there else IN_PART) if near else FAILS, text)
    return Finding(FAILS if lead.sign != np.sign(points) else HOLDS if near else IN_PART, text)


def _leads(cell: tuple[str, str], rival: tuple[str, str], points: float, view: View) -> tuple[Mean, float, str]:
    """Our mean lead, the points to compare it with (the paper's over the same data sets), and a text."""
    names = view.measured([cell, rival])
    lead = mean_of(view.lead(cell, rival, d) for d in names)
    text = f"{view.method(cell[1])} against {view.method(rival[1])}: {lead} points over {_over(names)}"
    if len(names) < len(DATASETS):
        paper = paper_view()
        points = mean_of(paper.lead(cell, rival, d) for d in names).value
        text += f"; the paper there: {points:+.1f}"
    return lead, points, text


def _small_lead(cell: tuple[str, str], rival: tuple[str, str], points: float, view: View) -> Finding:
    """`cell` is no more than `points` ahead of `rival` on average; a rival that is far ahead is half of the claim."""
    lead, points, text = _leads(cell, rival, points, view)
    close = abs(lead.value - points) <= view.tolerance
    return Finding(HOLDS if close else IN_PART if lead.value < points else FAILS, text)


def _average(table: str, method: str, value: float, view: View) -> Finding:
    """The average over the data sets is `value`."""
    names = view.measured([(table, method)])
    ours = view.average(table, method, names).value
    text = f"{view.method(method)}: {ours:.1f} over {_over(names)}"
    if len(names) < len(DATASETS):
        value = paper_view().average(table, method, names).value
        text += f"; the paper there: {value:.1f}"
    return Finding(HOLDS if abs(ours - value) <= view.tolerance else FAILS, text)


def _best_average(table: str, method: str, rivals: Collection[str], view: View) -> Finding:
    rivals = [m for m in rivals if m != method]
    names = view.measured((table, m) for m in (method, *rivals))
    best_rival = max(rivals, key=lambda m: view.average(table, m, names).value)
    lead = mean_of(view.lead((table, method), (table, best_rival), d) for d in names)
    outcome = (FAILS, IN_PART, HOLDS)[lead.sign + 1]
    return Finding(
        outcome,
        f"{view.method(method)} {view.average(table, method, names).value:.1f}, next best {view.method(best_rival)} "
        f"{view.average(table, best_rival, names).value:.1f}, difference {lead} over {_over(names)}",
    )


def _worse(
    cell: tuple[str, str], rivals: Collection[tuple[str, str]], allowed: Collection[tuple[str, str]] | int, view: View
) -> Finding:
    """`cell` falls behind a rival on no more data sets than so many, or nowhere but for these (dataset, rival)."""
    names = view.measured([cell, *rivals])
    behind = {(d, rival) for d in names for rival in rivals if view.lead(cell, rival, d).sign < 0}
    worse = [d for d in names if any(d == name for name, _ in behind)]
    if isinstance(allowed, int):
        missed = len(worse) - allowed
    else:
        missed = len({d for d, rival in behind if (d, rival[1]) not in allowed})
    if _by_count(missed) != _by_count(missed + len(view.datasets) - len(names)):  # what is not measured may be worse
        raise NotMeasured(
            f"{view.method(cell[1])} is worse on {len(worse)} of {len(names)} data sets; the others decide"
        )
    even = sum(view.lead(cell, rival, d).sign == 0 for d in names for rival in rivals)
    shown = [
        f"{PAPER_NAME_OF[d]} ({view.method(rival[1])} {view.lead(cell, rival, d)})"
        for d in worse
        for rival in rivals
        if (d, rival) in behind
    ]
    return Finding(
        _by_count(missed),
        f"{view.method(cell[1])} worse on {', '.join(shown) or 'none'} of {_over(names)}; even in {even} comparisons",
    )


def _wins(table: str, method: str, rivals: Collection[str], at_least: int, view: View) -> Finding:
    """`method` has the highest mean on at least so many data sets."""
    rivals = [m for m in rivals if m != method]
    names = view.measured((table, m) for m in (method, *rivals))
    won = [d for d in names if all(view.mean(table, method, d).value >= view.mean(table, m, d).value for m in rivals)]
    outcome = _by_count(at_least - len(won))
    if outcome != _by_count(at_least - len(won) - (len(DATASETS) - len(names))):  # what is not measured may be won
        raise NotMeasured(
            f"{view.method(method)} is the best on {len(won)} of {len(names)} data sets; the others decide"
        )
    return Finding(outcome, f"{view.method(method)} is the best on {len(won)} of {_over(names)}: {_names(won)}")


def _beats(cell: tuple[str, str], rival: tuple[str, str], dataset: str, view: View) -> Finding:
    lead = view.lead(cell, rival, dataset)
    names = f"{view.method(cell[1])} {view.mean(*cell, dataset).value:.1f}, "
    names += f"{view.method(rival[1])} {view.mean(*rival, dataset).value:.1f}"
    return Finding((FAILS, IN_PART, HOLDS)[lead.sign + 1], f"{PAPER_NAME_OF[dataset]}: {names}, difference {lead}")


def _all(*judges: Judge) -> Judge:
    """Several parts: all hold, none holds, or some do."""

    def judge(view: View) -> Finding:
        findings = [part(view) for part in judges]
        outcomes = {f.outcome for f in findings}
        outcome = outcomes.pop() if len(outcomes) == 1 else IN_PART
        return Finding(outcome, "; ".join(f.text for f in findings))

    return judge


# -- claims that need their own computation ---------------------------------------------------------------------------


def _no_universal_winner(view: View) -> Finding:
    names = view.measured(("clust", m) for m in CLUSTERINGS)
    winners = {d: max(CLUSTERINGS, key=lambda m: view.mean("clust", m, d).value) for d in names}
    outcome = HOLDS if len(set(winners.values())) > 1 else FAILS
    return Finding(outcome, "; ".join(f"{PAPER_NAME_OF[d]}: {m}" for d, m in winners.items()))


def _known_classes_make_the_gain(view: View) -> Finding:
    """NCD k-means stays ahead of a k-means that chooses among its starts as it does, by at least half of its lead."""
    ours, plain, alike = ("clust", "NCD k-means"), ("clust", "k-means"), ("choices", CHOSEN_ALIKE)
    names = view.measured([ours, plain, alike])
    gain, rest = (mean_of(view.lead(ours, rival, d) for d in names) for rival in (plain, alike))
    outcome = FAILS if rest.sign <= 0 else HOLDS if rest.value >= gain.value / 2 else IN_PART
    return Finding(
        outcome,
        f"NCD k-means against k-means: {gain} points; against k-means that chooses the best of its starts by the same "
        f"rule: {rest} points, over {_over(names)}",
    )


def _greatest_lead_when_estimated(view: View) -> Finding:
    """PBN's leads over the three others are larger with k estimated than with k known."""
    texts, grown = [], []
    for rival in ("Baseline", "NCD SC", "TabularNCD"):
        names = view.measured([(t, m) for t in ("ncd", "ncd_k_est") for m in ("PBN", rival)])
        known = mean_of(view.lead(("ncd", "PBN"), ("ncd", rival), d) for d in names)
        estimated = mean_of(view.lead(("ncd_k_est", "PBN"), ("ncd_k_est", rival), d) for d in names)
        grown.append(estimated.minus(known).sign > 0)
        texts.append(f"over {view.method(rival)} {known.value:+.1f} known, {estimated.value:+.1f} estimated")
    return Finding(_by_count(3 - sum(grown)) if any(grown) else FAILS, "; ".join(texts))


def _change_when_estimated(method: str, points: float, view: View) -> Finding:
    """The average of `method` changes by `points` when k is estimated."""
    outcome, text = _lead(("ncd_k_est", method), ("ncd", method), points, view)
    return Finding(outcome, f"{view.method(method)} with k estimated against k known:" + text.partition(":")[2])


def _stays_when_estimated(method: str, points: float, view: View) -> Finding:
    """The average of `method` falls by no more than `points` when k is estimated."""
    outcome, text = _small_lead(("ncd", method), ("ncd_k_est", method), points, view)
    return Finding(outcome, f"{view.method(method)} with k known against k estimated:" + text.partition(":")[2])


def _n_outputs(view: View, dataset: str) -> float:
    """How many clusters TabularNCD was trained for; the paper prints what the features' silhouette says."""
    if view.name == "paper":
        return view.mean("silhouette_results", FEATURES_METHOD, dataset).value
    return view.mean("ncd_k_est", "TabularNCD", dataset, "estimated k").value


def _no_loss_despite_overestimate(view: View) -> Finding:
    k = _n_outputs(view, "optdigits")
    change = view.lead(("ncd_k_est", "TabularNCD"), ("ncd", "TabularNCD"), "optdigits")
    k_true = len(ncdlib.DATASETS["optdigits"].novel_classes)
    if k <= k_true:
        raise NotMeasured(f"an estimate that is too large; for Optdigits it is {k:.0f} here")
    return Finding(
        FAILS if change.sign < 0 else HOLDS,
        f"Optdigits: {k:.0f} classes by the features' silhouette, {k_true} in truth; "
        f"{view.method('TabularNCD')} {change} points, each setting with hyperparameters of its own",
    )


def _loss_by_overestimate(view: View) -> Finding:
    k = _n_outputs(view, "letter")
    change = view.lead(("ncd_k_est", "TabularNCD"), ("ncd", "TabularNCD"), "letter")
    k_true = len(ncdlib.DATASETS["letter"].novel_classes)
    if k <= k_true:
        raise NotMeasured(f"an estimate that is too large; for Letter it is {k:.0f} here")
    return Finding(
        (HOLDS, IN_PART, FAILS)[change.sign + 1],
        f"Letter: {k:.0f} classes by the features' silhouette, {k_true} in truth; "
        f"{view.method('TabularNCD')} {change} points",
    )


def _error_of_k(view: View, table: str, method: str, dataset: str) -> float:
    """Estimated minus true number of novel classes."""
    return view.mean(table, method, dataset, "estimated k").value - len(ncdlib.DATASETS[dataset].novel_classes)


def _index_errors(view: View) -> pd.DataFrame:
    """|estimated - true number of classes|: data sets down, indices across."""
    names = view.measured([("silhouette_results", index) for index in INDEX_NAMES.values()])
    return pd.DataFrame(
        {
            short: [abs(_error_of_k(view, "silhouette_results", index, d)) for d in names]
            for short, index in INDEX_NAMES.items()
        },
        index=names,
    )


def _mean_ranks(view: View) -> pd.Series:
    return _index_errors(view).rank(axis=1).mean().sort_values()


def _rank_text(ranks: pd.Series) -> str:
    return "mean ranks " + ", ".join(f"{name} {rank:.1f}" for name, rank in ranks.items())


def _index_has_rank(index: str, place: int, view: View) -> Finding:
    """The index comes at this place by mean rank of its error (-1: the last)."""
    ranks = _mean_ranks(view)
    target = ranks.iloc[place]
    at_place = np.isclose(ranks[index], target)
    near = abs(list(ranks.index).index(index) - place % len(ranks)) == 1
    return Finding(HOLDS if at_place else IN_PART if near else FAILS, _rank_text(ranks))


def _indices_not_different(view: View) -> Finding:
    import scikit_posthocs  # slow to import, and needed here only

    errors = _index_errors(view)
    p = scikit_posthocs.posthoc_nemenyi_friedman(errors.to_numpy())
    smallest = float(np.min(p.to_numpy()))
    text = f"smallest p of the Nemenyi test {smallest:.3f} over {_over(list(errors.index))}"
    return Finding(HOLDS if smallest > 0.05 else FAILS, text)


def _latent_helps_silhouette(view: View) -> Finding:
    methods = (INDEX_NAMES["silhouette"], FEATURES_METHOD)
    names = view.measured([("silhouette_results", m) for m in methods])
    errors = pd.DataFrame({m: {d: abs(_error_of_k(view, "silhouette_results", m, d)) for d in names} for m in methods})
    latent, features = errors.mean()
    outcome = HOLDS if latent < features else IN_PART if latent == features else FAILS
    largest = errors.max(axis=1).idxmax()
    without = errors.drop(index=largest).mean()
    return Finding(
        outcome,
        f"mean error {latent:.1f} in PBN's latent space, {features:.1f} in the features, {_over(names)}; without "
        f"{PAPER_NAME_OF[largest]} {without.iloc[0]:.1f} and {without.iloc[1]:.1f}",
    )


def _large_overestimates(view: View) -> Finding:
    found = {}
    for short in ("davies_bouldin", "dunn"):
        names = view.measured([("silhouette_results", INDEX_NAMES[short])])
        values = {d: view.mean("silhouette_results", INDEX_NAMES[short], d).value for d in names}
        found[short] = {d: k for d, k in values.items() if k > 5 * len(ncdlib.DATASETS[d].novel_classes)}
    text = "; ".join(
        f"{short}: " + (", ".join(f"{PAPER_NAME_OF[d]} {k:.0f}" for d, k in large.items()) or "none")
        for short, large in found.items()
    )
    n_indices = sum(bool(large) for large in found.values())
    return Finding((FAILS, IN_PART, HOLDS)[n_indices], f"more than five times the truth: {text}")


def _k_is_estimated_well(view: View) -> Finding:
    """By the silhouette in PBN's latent space: within one class of the truth on all data sets but one.

    Table 10 has PBN's hyperparameters for known k. In the runs of Table 5 the hyperparameters are those of estimated k,
    as they would be in earnest; the paper does not print their estimates.
    """
    in_table_10, in_table_5 = ("silhouette_results", INDEX_NAMES["silhouette"]), ("ncd_k_est", "PBN")
    sources = {"paper": [in_table_10], "published": [in_table_10, in_table_5], "searched": [in_table_5]}
    outcomes, texts = [], []
    for table, method in sources[view.name]:
        names = view.measured([(table, method)])
        errors = {d: _error_of_k(view, table, method, d) for d in names}
        far = [f"{PAPER_NAME_OF[d]} ({e:+g})" for d, e in errors.items() if abs(e) > 1]
        exact = sum(e == 0 for e in errors.values())
        outcomes.append(_by_count(len(far) - 1))
        texts.append(
            f"{_number(table)}: exact on {exact} of {_over(names)}; off by more than one: {', '.join(far) or 'none'}"
        )
    return Finding(combine(outcomes), "; ".join(texts))


def _others_cannot_count(view: View) -> Finding:
    """In the spaces of the baseline and of NCD SC the mean error of the estimated number is larger than in PBN's."""
    methods = ("PBN", "Baseline", "NCD SC")
    names = view.measured(("ncd_k_est", m) for m in methods)
    errors = {m: np.mean([abs(_error_of_k(view, "ncd_k_est", m, d)) for d in names]) for m in methods}
    n_worse = sum(errors[m] > errors["PBN"] for m in methods[1:])
    text = ", ".join(f"{m} {error:.1f}" for m, error in errors.items())
    return Finding((FAILS, IN_PART, HOLDS)[n_worse], f"mean error of the estimated number: {text}; {_over(names)}")


def _trials(view: View, method: str, dataset: str) -> pd.DataFrame:
    """Hidden and novel ARI of each trial."""
    name = view.method(method)
    view.used["letter_corr", name, dataset] = None
    if view.runs is None:
        raise NotMeasured("numbers: the paper shows a figure")
    both = hidden_and_novel_ari(name, dataset, view.folder, view.runs)
    if len(both) < MIN_TRIALS:
        view.missing["letter_corr", name, dataset] = None
        raise NotMeasured(f"trials of {name} on {PAPER_NAME_OF[dataset]}: {len(both)}, at least {MIN_TRIALS} needed")
    return both


def _correlation(view: View, method: str, dataset: str) -> tuple[float, float, int]:
    """Pearson's r of hidden and novel ARI, the standard error of its Fisher transform, and the number of trials."""
    both = _trials(view, method, dataset)
    return float(stats.pearsonr(both["hidden"], both["novel"])[0]), 1 / np.sqrt(len(both) - 3), len(both)


def _correlation_interval(r: float, se: float) -> str:
    low, high = np.tanh(np.arctanh(r) + np.array([-1.96, 1.96]) * se)
    return f"{r:.2f} [{low:.2f}, {high:.2f}]"


def _correlation_stronger(dataset: str, view: View) -> Finding:
    (r1, se1, _), (r2, se2, _) = (_correlation(view, m, dataset) for m in ("PBN", "TabularNCD"))
    z = (np.arctanh(r1) - np.arctanh(r2)) / np.hypot(se1, se2)
    outcome = HOLDS if z > STANDARD_ERRORS else FAILS if z < -STANDARD_ERRORS else IN_PART
    return Finding(
        outcome,
        f"{PAPER_NAME_OF[dataset]}: r of PBN {_correlation_interval(r1, se1)}, "
        f"of {view.method('TabularNCD')} {_correlation_interval(r2, se2)}",
    )


def _pbn_ahead_in_trials(
    what: str, measure: Callable[[View, str, str], float], datasets: Iterable[str], at_least: int, view: View
) -> Finding:
    """PBN's trials have a larger value than TabularNCD's on all data sets; on no more than half of them: a failure."""
    found = {}
    for dataset in datasets:
        try:
            found[dataset] = [measure(view, m, dataset) for m in ("PBN", "TabularNCD")]
        except NotMeasured:
            continue
    rival = view.method("TabularNCD")
    if len(found) < at_least:
        raise NotMeasured(f"trials of PBN and {rival} on {at_least} of {_names(datasets)}; there are {len(found)}")
    ahead = [d for d, (pbn, other) in found.items() if pbn > other]
    outcome = HOLDS if len(ahead) == len(found) else FAILS if len(ahead) <= len(found) / 2 else IN_PART
    text = "; ".join(f"{PAPER_NAME_OF[d]} {pbn:.2f} / {other:.2f}" for d, (pbn, other) in found.items())
    return Finding(outcome, f"{what}, PBN / {rival}: larger on {len(ahead)} of {len(found)}: {text}")


def _correlation_stronger_elsewhere(view: View) -> Finding:
    others = [d for d in view.datasets if d != "letter"]
    return _pbn_ahead_in_trials("r", lambda *cell: _correlation(*cell)[0], others, at_least=MIN_DATASETS - 1, view=view)


def _share_beaten_by_the_chosen(view: View, method: str, dataset: str) -> float:
    """The share of the other trials that the one with the best hidden ARI beats in novel ARI."""
    both = _trials(view, method, dataset)
    return float((both["novel"] < both.loc[both["hidden"].idxmax(), "novel"]).sum() / (len(both) - 1))


def _fewer_hyperparameters_overfit_less(view: View) -> Finding:
    what = "share of the other trials that the chosen one beats on the novel classes"
    return _pbn_ahead_in_trials(what, _share_beaten_by_the_chosen, view.datasets, at_least=MIN_DATASETS, view=view)


def _hidden_predicts_novel(view: View) -> Finding:
    """PBN's hidden and novel ARI go together: r is above 0 beyond its standard error."""
    found = {}
    for dataset in view.datasets:
        try:
            found[dataset] = _correlation(view, "PBN", dataset)
        except NotMeasured:
            continue
    if len(found) < MIN_DATASETS:
        raise NotMeasured(f"trials of PBN on {MIN_DATASETS} data sets; there are {len(found)}")
    useful = [d for d, (r, se, _) in found.items() if np.arctanh(r) > STANDARD_ERRORS * se]
    text = ", ".join(f"{PAPER_NAME_OF[d]} {r:.2f}" for d, (r, _, _) in found.items())
    return Finding(_by_count(len(found) - len(useful)), f"r settled above 0 on {len(useful)} of {len(found)}: {text}")


def _hyperparameters_hold_tabularncd_back(view: View) -> Finding:
    """Mended, TabularNCD has as many hyperparameters as before: what it gains is not due to their number.

    If it gains nothing, their number may be the reason or not: half of the claim.
    """
    names = view.measured([("ncd", m) for m in ("PBN", "TabularNCD", MENDED)])
    gap = mean_of(view.lead(("ncd", "PBN"), ("ncd", "TabularNCD"), d) for d in names)
    gain = mean_of(view.lead(("ncd", MENDED), ("ncd", "TabularNCD"), d) for d in names)
    held_back = gap.sign > 0 and (gain.sign <= 0 or gain.value < gap.value / 2)
    outcome = IN_PART if held_back else FAILS
    return Finding(
        outcome, f"behind PBN by {gap}; with top_k as a fraction it gains {gain}, with seven as before, {_over(names)}"
    )


def _ncd_sc_is_quicker(view: View) -> Finding:
    timed = [("clust", "NCD SC"), ("ncd", "PBN")]
    names = [d for d in view.datasets if all([view.has(*cell, d, "seconds") for cell in timed])]
    if len(names) < MIN_DATASETS:
        raise NotMeasured("times of NCD SC (Table 3) and PBN (Table 4)")
    seconds = {
        d: (
            view.mean("clust", "NCD SC", d, "seconds").value,
            view.mean("ncd", "PBN", d, "seconds").value,
        )
        for d in names
    }
    slower = [d for d, (sc, pbn) in seconds.items() if sc >= pbn]
    text = ", ".join(f"{PAPER_NAME_OF[d]} {sc:.1f} / {pbn:.1f}" for d, (sc, pbn) in seconds.items())
    return Finding(_by_count(len(slower)), f"seconds a run (ten made together, tuning apart), NCD SC / PBN: {text}")


# -- the number of novel classes grows (Figure 7) ---------------------------------------------------------------------


def _curve(view: View, method: str) -> pd.Series:
    """Mean ACC in percent by the number of novel classes of Letter, from 2: with one, every partition is right."""
    view.used["perf_wrt_share", method, "letter"] = None
    if view.runs is None:
        raise NotMeasured("numbers: the paper shows a figure")
    runs = view.runs
    runs = runs[(runs["table"] == "perf_wrt_share") & (runs["method"] == method)].dropna(subset=["acc"])
    n_novel = runs["variant"].str.extract(r"^(\d+) novel", expand=False).astype(int)
    enough = runs.groupby(n_novel).size() >= MIN_RUNS
    curve = 100 * runs["acc"].groupby(n_novel).mean()[enough].drop(1, errors="ignore")
    if len(curve) < 8 or curve.index.max() < 19:
        view.missing["perf_wrt_share", method, "letter"] = None
        raise NotMeasured(f"{method} at enough numbers of novel classes (Figure 7)")
    return curve


def _curves(view: View, methods: Iterable[str]) -> pd.DataFrame:
    """The curves of several methods, at the numbers of novel classes that all of them have."""
    return pd.DataFrame({m: _curve(view, m) for m in methods}).dropna()


def _decreasing(view: View) -> Finding:
    curves = _curves(view, SHARE_METHODS)
    rho = {method: float(stats.spearmanr(curve.index, curve)[0]) for method, curve in curves.items()}
    falling = [m for m, r in rho.items() if r <= -0.9]
    outcome = HOLDS if len(falling) == len(rho) else FAILS if len(falling) <= 2 else IN_PART
    return Finding(
        outcome, "rank correlation of ACC with the number: " + ", ".join(f"{m} {r:.2f}" for m, r in rho.items())
    )


def _late_falls(view: View, methods: Iterable[str]) -> dict[str, float]:
    """What each method loses from the middle of the curve to its end, as a share of the middle."""
    curves = _curves(view, methods)
    return (1 - curves.iloc[-1] / curves.iloc[len(curves) // 2]).to_dict()


def _deep_fall_faster(view: View) -> Finding:
    falls = _late_falls(view, SHARE_METHODS)
    pairs = [falls[deep] > falls[other] for deep in DEEP for other in ("NCD k-means", "NCD SC")]
    outcome = HOLDS if all(pairs) else FAILS if not any(pairs) else IN_PART
    return Finding(outcome, "lost in the second half: " + ", ".join(f"{m} {f:.0%}" for m, f in falls.items()))


def _baseline_falls_most(view: View) -> Finding:
    falls = _late_falls(view, DEEP)
    outcome = HOLDS if max(falls, key=falls.__getitem__) == "Baseline" else FAILS
    return Finding(outcome, "lost in the second half: " + ", ".join(f"{m} {f:.0%}" for m, f in falls.items()))


def _tabularncd_peaks(view: View) -> Finding:
    curve = _curve(view, "TabularNCD")
    peak = int(curve.idxmax())
    bumps = curve.index[(curve > curve.shift()) & (curve > curve.shift(-1))]  # higher than both neighbours
    around_seven = [n for n in bumps if 5 <= n <= 9]
    outcome = HOLDS if peak in around_seven else IN_PART if around_seven else FAILS
    local = ", ".join(f"{curve[n]:.1f} at {n}" for n in bumps) or "none"
    return Finding(outcome, f"highest ACC {curve.max():.1f} at {peak} novel classes; local peaks: {local}")


def _pbn_best_over_a_wide_range(view: View) -> Finding:
    curves = _curves(view, SHARE_METHODS)
    won = list(curves.index[curves.idxmax(axis=1) == "PBN"])
    outcome = HOLDS if len(won) > len(curves) / 2 else IN_PART if len(won) > len(curves) / 4 else FAILS
    where = f": {', '.join(map(str, won))} novel classes" if won else ""
    return Finding(outcome, f"PBN is the best at {len(won)} of {len(curves)} numbers{where}")


# -- inside the paper -------------------------------------------------------------------------------------------------

_PRINTED_LEADS = [
    ("ncd", "Baseline", 21.6),
    ("ncd", "TabularNCD", 12.9),
    ("ncd", "NCD SC", 1.0),
    ("ncd_k_est", "Baseline", 17.6),
    ("ncd_k_est", "NCD SC", 18.8),
    ("ncd_k_est", "TabularNCD", 16.3),
    ("final_table_nmi", "Baseline", 23.5),
    ("final_table_nmi", "NCD SC", 8.6),
    ("final_table_nmi", "TabularNCD", 13.5),
    ("final_table_ari", "Baseline", 24.5),
    ("final_table_ari", "NCD SC", 12.4),
    ("final_table_ari", "TabularNCD", 17.5),
]


def _exact(right: bool) -> str:
    """Arithmetic is right or wrong."""
    return HOLDS if right else FAILS


def _printed(table: str, method: str, dataset: str, column: str = "value") -> float:
    rows = paper_results()
    row = rows[(rows["table"] == table) & (rows["method"] == method) & (rows["dataset"] == dataset)]
    return float(row[column].item())


def _printed_averages(view: View) -> Finding:
    wrong, n = [], 0
    for row in paper_results().query("dataset == 'average'").itertuples():
        n += 1
        right = view.average(row.table, row.method, DATASETS).value
        if abs(right - row.value) > 0.1:
            wrong.append(f"{row.method} in {PAPER_NUMBER[row.table]}: printed {row.value:.1f}, is {right:.1f}")
    return Finding(_exact(not wrong), f"{n - len(wrong)} of {n} are right; " + ("; ".join(wrong) or "none is wrong"))


def _printed_leads(view: View) -> Finding:
    wrong = []
    for table, rival, printed in _PRINTED_LEADS:
        right = mean_of(view.lead((table, "PBN"), (table, rival), d) for d in DATASETS).value
        if abs(right - printed) > ROUNDING:
            wrong.append(f"over {rival} in {PAPER_NUMBER[table]}: printed {printed:.1f}, is {right:.1f}")
    n = len(_PRINTED_LEADS)
    return Finding(_exact(not wrong), f"{n - len(wrong)} of {n} follow; " + ("; ".join(wrong) or "none is wrong"))


def _printed_once_worse(view: View) -> Finding:
    worse = [d for d in DATASETS if _printed("clust", "NCD SC", d) < _printed("clust", "SC", d)]
    return Finding(_exact(len(worse) == 1), f"printed means: lower on {len(worse)}: {_names(worse)}")


def _printed_never_worse(view: View) -> Finding:
    worse = [d for d in DATASETS if _printed("clust", "NCD k-means", d) < _printed("clust", "k-means", d)]
    return Finding(_exact(not worse), f"printed means: lower on {len(worse)}: {_names(worse)}")


def _falls_from_74(view: View) -> Finding:
    printed = _printed("ncd", "NCD SC", "average")
    return Finding(_exact(printed == 74.3), f"the text says 74.3, the table {printed:.1f}")


def _same_cell_twice(view: View) -> Finding:
    different = [
        f"{PAPER_NAME_OF[d]} ± {_printed('clust', 'NCD SC', d, 'std')} and ± {_printed('ncd', 'NCD SC', d, 'std')}"
        for d in DATASETS
        if any(_printed("clust", "NCD SC", d, c) != _printed("ncd", "NCD SC", d, c) for c in ("value", "std"))
    ]
    return Finding(_exact(not different), "different: " + ("; ".join(different) or "none"))


def _latent_sizes_in_range(view: View) -> Finding:
    table = published_hyperparameters().query("parameter == 'latent_dim' and number_of_classes == 'estimated'")
    n_features = PAPER_DATA["features"]
    outside = [
        f"{row.method} on {PAPER_NAME_OF[row.dataset]}: {row.value:.0f} of at most {n_features[row.dataset]}"
        for row in table.itertuples()
        if not 5 <= row.value <= n_features[row.dataset]
    ]
    return Finding(_exact(not outside), "outside: " + ("; ".join(outside) or "none"))


def _seventy_thirty(view: View) -> Finding:
    share = PAPER_DATA["test"] / (PAPER_DATA["novel"] + PAPER_DATA["test"])
    own_split = share[["letter", "mfeat", "cnae9"]]  # UCI splits human, pendigits, optdigits; census is capped
    wrong = [d for d, s in own_split.items() if abs(s - 0.3) > 0.03]
    text = ", ".join(f"{PAPER_NAME_OF[d]} {s:.0%}" for d, s in own_split.items())
    return Finding(_exact(not wrong), f"novel rows for testing: {text}")


def _n_features(view: View, dataset: str) -> int:
    """Columns of the data as we read them: one for each attribute of the file."""
    return pd.read_csv(results_folder(view.folder) / "datasets.csv", index_col="name").loc[dataset, "features"]


def _one_hot_encoded(view: View) -> Finding:
    ours, printed = _n_features(view, "census"), PAPER_DATA.loc["census", "features"]
    return Finding(_exact(printed > ours), f"Census, all categories: printed {printed}; attributes in the file {ours}")


def _features_of_mfeat(view: View) -> Finding:
    ours = _n_features(view, "mfeat")
    printed = PAPER_DATA.loc["mfeat", "features"]
    largest = published_hyperparameters().query("dataset == 'mfeat' and parameter == 'latent_dim'")["value"].max()
    text = f"printed {printed}; the file without its first column has {ours}; largest tuned latent {largest:.0f}"
    return Finding(_exact(ours == printed), text)


def _same_hyperparameters_on_pendigits(view: View) -> Finding:
    table = published_hyperparameters().query("method == 'TabularNCD' and dataset == 'pendigits'")
    wide = table.pivot_table(index="parameter", columns="number_of_classes", values="value").dropna()
    different = wide[~np.isclose(wide["known"], wide["estimated"], rtol=1e-3)]
    text = "; ".join(f"{row.Index}: {row.known} known, {row.estimated} estimated" for row in different.itertuples())
    return Finding(_exact(different.empty), text or "all are the same")


def _number_of_hyperparameters(view: View) -> Finding:
    table = published_hyperparameters().query("number_of_classes == 'known' and dataset == 'letter'")
    n = table.groupby("method").size()
    text = ", ".join(f"{method} {count}" for method, count in n.items())
    return Finding(_exact((n["PBN"], n["TabularNCD"]) == (4, 7)), text)


def _greatest_lead_printed(view: View) -> Finding:
    leads = {}
    for rival in ("Baseline", "NCD SC", "TabularNCD"):
        leads[rival] = [
            _printed(table, "PBN", "average") - _printed(table, rival, "average") for table in ("ncd", "ncd_k_est")
        ]
    smaller = [rival for rival, (known, estimated) in leads.items() if estimated <= known]
    text = "; ".join(f"over {r} {known:.1f} known, {est:.1f} estimated" for r, (known, est) in leads.items())
    return Finding(_exact(not smaller), text)


_CONVERGENCE = "clust_results_different_convergence"
_NOVEL_ONLY = (_CONVERGENCE, "update novel only centroids on unlabeled data")
_NOVEL_ON_ALL = (_CONVERGENCE, "update novel only centroids on labeled and unlabeled data")
_BOTH_ON_ALL = (_CONVERGENCE, "update known and novel centroids on labeled and unlabeled data")


def _known_centroids_always_worse_printed(view: View, rival: tuple[str, str] = _NOVEL_ONLY) -> Finding:
    better = [d for d in DATASETS if _printed(*_BOTH_ON_ALL, d) >= _printed(*rival, d)]
    return Finding(_exact(not better), f"printed means: not worse on {_names(better)}")


# -- the ledger -------------------------------------------------------------------------------------------------------

ALL_VIEWS = ("published", "searched", "mended")
CHAPTER_OF = {  # number of the chapter that shows the measurements of a table or figure
    "clust": 10,
    "ncd": 10,
    "ncd_k_est": 11,
    "final_table_nmi": 11,
    "final_table_ari": 11,
    "perf_wrt_share": 12,
    "pbn_sc": 13,
    "hyperparameters": 14,
    "silhouette_results": 8,
    "cd_latent": 8,
    "letter_corr": 7,
    _CONVERGENCE: 2,
    "data": 15,
}


@dataclass(frozen=True)
class Claim:
    """Something the paper says, where it says it, and the function that answers it.

    Attributes
    ----------
    id : str
    place : str
        Section, and the table or figure that it refers to.
    says : str
        The claim in our words.
    judge : callable
        From a `View` of the tables to a `Finding`.
    table : str
        The label of the table or figure that it rests on.
    views : tuple of str
        With which hyperparameters it is judged; ("paper",) for the arithmetic inside the paper.
    """

    id: str
    place: str
    says: str
    judge: Judge
    table: str
    views: tuple[str, ...] = ALL_VIEWS

    @property
    def chapter(self) -> int:
        return 15 if self.views == ("paper",) else CHAPTER_OF[self.table]

    @property
    def full_place(self) -> str:
        return f"{self.place}, {PAPER_NUMBER[self.table]}"


def _claim_list() -> list[Claim]:
    known, estimated = "Section 7.2.1", "Section 7.2.2"
    as_is = ("published",)  # nothing to tune
    c, n, e = "clust", "ncd", "ncd_k_est"
    claims = [
        # Table 3
        Claim(
            "ncd-kmeans-never-worse",
            known,
            "NCD k-means is never worse than k-means.",
            partial(_worse, (c, "NCD k-means"), [(c, "k-means")], 0),
            c,
            as_is,
        ),
        Claim(
            "ncd-sc-once-worse",
            known,
            "NCD SC is worse than SC on one data set only.",
            partial(_worse, (c, "NCD SC"), [(c, "SC")], 1),
            c,
        ),
        Claim(
            "clustering-gains-from-known",
            known,
            "Simple clustering gains from the known classes: on average NCD k-means is 2.6 points ahead of k-means.",
            partial(_lead, (c, "NCD k-means"), (c, "k-means"), 2.6),
            c,
            as_is,
        ),
        Claim(
            "known-classes-make-the-gain",
            known,
            "It is the known classes that put NCD k-means ahead of k-means.",
            _known_classes_make_the_gain,
            c,
            as_is,
        ),
        Claim(
            "ncd-sc-gains-from-known",
            known,
            "Spectral clustering gains from the known classes: on average NCD SC is 5.3 points ahead of SC.",
            partial(_lead, (c, "NCD SC"), (c, "SC"), 5.3),
            c,
        ),
        Claim(
            "no-universal-clustering",
            known,
            "No clustering algorithm is the best on all data sets.",
            _no_universal_winner,
            c,
        ),
        Claim(
            "ncd-sc-wins-four",
            known,
            "NCD SC is ahead of the three other clusterings on four data sets.",
            partial(_wins, c, "NCD SC", CLUSTERINGS, 4),
            c,
        ),
        Claim(
            "ncd-sc-best-average",
            known,
            "NCD SC has the highest average of the four clusterings.",
            partial(_best_average, c, "NCD SC", CLUSTERINGS),
            c,
        ),
        Claim(
            "ncd-sc-average",
            known,
            "NCD SC reaches 76.3 % on average.",
            partial(_average, c, "NCD SC", 76.3),
            c,
        ),
        # Table 4
        Claim(
            "pbn-over-baseline",
            known,
            "With k known, PBN is 21.6 points ahead of the baseline on average.",
            partial(_lead, (n, "PBN"), (n, "Baseline"), 21.6),
            n,
        ),
        Claim(
            "pbn-over-tabularncd",
            known,
            "With k known, PBN is 12.9 points ahead of TabularNCD on average.",
            partial(_lead, (n, "PBN"), (n, "TabularNCD"), 12.9),
            n,
        ),
        Claim(
            "pbn-beaten-once",
            known,
            "Of the deep methods, only the baseline beats PBN, and only on Letter.",
            partial(_worse, (n, "PBN"), [(n, "Baseline"), (n, "TabularNCD")], [("letter", "Baseline")]),
            n,
        ),
        Claim(
            "baseline-wins-letter",
            known,
            "The baseline beats PBN on Letter.",
            partial(_beats, (n, "Baseline"), (n, "PBN"), "letter"),
            n,
        ),
        Claim(
            "ncd-sc-trails-pbn",
            known,
            "NCD SC trails PBN by only 1.0 point on average.",
            partial(_small_lead, (n, "PBN"), (n, "NCD SC"), 1.0),
            n,
        ),
        Claim(
            "ncd-sc-beats-pbn-twice",
            known,
            "NCD SC beats PBN on two data sets, Human and Optdigits.",
            _all(
                partial(_beats, (n, "NCD SC"), (n, "PBN"), "human"),
                partial(_beats, (n, "NCD SC"), (n, "PBN"), "optdigits"),
                partial(_worse, (n, "PBN"), [(n, "NCD SC")], 2),
            ),
            n,
        ),
        Claim(
            "pbn-best-average-known",
            known,
            "With k known, PBN has the highest average.",
            partial(_best_average, n, "PBN", NCD_METHODS),
            n,
        ),
        Claim(
            "pbn-wins-four-known",
            known,
            "With k known, PBN is the best of the four methods on four data sets.",
            partial(_wins, n, "PBN", NCD_METHODS, 4),
            n,
        ),
        Claim(
            "pbn-average-known",
            known,
            "With k known, PBN reaches 77.3 % on average.",
            partial(_average, n, "PBN", 77.3),
            n,
        ),
        Claim(
            "tabularncd-average-known",
            known,
            "With k known, TabularNCD reaches 64.4 % on average.",
            partial(_average, n, "TabularNCD", 64.4),
            n,
        ),
        Claim(
            "seven-hyperparameters",
            known,
            "TabularNCD is held back by the number of its hyperparameters.",
            _hyperparameters_hold_tabularncd_back,
            n,
            ("searched",),
        ),
        Claim(
            "ncd-sc-quicker",
            known,
            "NCD SC takes less time than PBN.",
            _ncd_sc_is_quicker,
            n,
            as_is,
        ),
        # Figure 5
        Claim(
            "correlation-letter",
            known,
            "On Letter, hidden and novel ARI go together much more closely for PBN than for TabularNCD.",
            partial(_correlation_stronger, "letter"),
            "letter_corr",
            ("searched", "mended"),
        ),
        Claim(
            "correlation-elsewhere",
            known,
            "Letter is shown as an example, to explain TabularNCD's results: PBN's correlation should then be stronger "
            "on the other data sets too.",
            _correlation_stronger_elsewhere,
            "letter_corr",
            ("searched", "mended"),
        ),
        Claim(
            "seven-overfit-hidden-classes",
            "Abstract and Section 7.2.1",
            "A method with seven hyperparameters overfits the hidden classes more than one with four: its choice "
            "carries over less to the novel ones.",
            _fewer_hyperparameters_overfit_less,
            "letter_corr",
            ("searched", "mended"),
        ),
        Claim(
            "hidden-classes-tune",
            "Abstract and Section 4",
            "Hyperparameters that are good on hidden classes are good on the novel ones (PBN).",
            _hidden_predicts_novel,
            "letter_corr",
            ("searched",),
        ),
        # Table 5
        *(
            Claim(
                f"pbn-over-{rival.lower().replace(' ', '-')}-estimated",
                estimated,
                f"With k estimated, PBN is {points} points ahead of {rival} on average.",
                partial(_lead, (e, "PBN"), (e, rival), points),
                e,
            )
            for rival, points in (("Baseline", 17.6), ("NCD SC", 18.8), ("TabularNCD", 16.3))
        ),
        Claim(
            "pbn-best-average-estimated",
            estimated,
            "With k estimated, PBN has the highest average.",
            partial(_best_average, e, "PBN", NCD_METHODS),
            e,
        ),
        Claim(
            "pbn-wins-four-estimated",
            estimated,
            "With k estimated, PBN is the best (or shares the first place) on four data sets.",
            partial(_wins, e, "PBN", NCD_METHODS, 4),
            e,
        ),
        Claim(
            "greatest-lead-estimated",
            estimated,
            "PBN's leads are greatest with k estimated.",
            _greatest_lead_when_estimated,
            e,
        ),
        Claim(
            "tabularncd-wins-optdigits",
            estimated,
            "With k estimated, TabularNCD beats PBN on Optdigits.",
            partial(_beats, (e, "TabularNCD"), (e, "PBN"), "optdigits"),
            e,
        ),
        Claim(
            "unused-neurons-optdigits",
            estimated,
            "TabularNCD loses nothing on Optdigits by too large a k: it probably leaves superfluous outputs unused.",
            _no_loss_despite_overestimate,
            e,
        ),
        Claim(
            "overestimate-hurts-letter",
            estimated,
            "With k estimated far too large, on Letter, TabularNCD falls.",
            _loss_by_overestimate,
            e,
        ),
        Claim(
            "baseline-falls",
            estimated,
            "The baseline loses 2.3 points on average when k is estimated (by the text; 3.3 by the tables).",
            partial(_change_when_estimated, "Baseline", -2.3),
            e,
        ),
        Claim(
            "ncd-sc-falls",
            estimated,
            "NCD SC loses 24.1 points on average when k is estimated (by the tables; 22.1 by the text).",
            partial(_change_when_estimated, "NCD SC", -24.1),
            e,
        ),
        Claim(
            "pbn-stays",
            estimated,
            "PBN keeps 71.0 % on average when k is estimated, 6.3 points less than with k known.",
            _all(partial(_average, e, "PBN", 71.0), partial(_stays_when_estimated, "PBN", 6.3)),
            e,
        ),
        Claim(
            "others-cannot-count",
            estimated,
            "The baseline and NCD SC find no space in which the novel classes can be counted, as PBN does.",
            _others_cannot_count,
            e,
            ("published", "searched"),
        ),
        # Tables 6 and 7
        *(
            Claim(
                f"pbn-over-{rival.lower().replace(' ', '-')}-{metric.lower()}",
                "Appendix B",
                f"With k estimated, PBN's {metric} is {points} points above that of {rival} on average.",
                partial(_lead, (table, "PBN"), (table, rival), points),
                table,
            )
            for table, metric, leads in (
                ("final_table_nmi", "NMI", (23.5, 8.6, 13.5)),
                ("final_table_ari", "ARI", (24.5, 12.4, 17.5)),
            )
            for rival, points in zip(("Baseline", "NCD SC", "TabularNCD"), leads, strict=True)
        ),
        Claim(
            "all-metrics-agree",
            "Appendix B",
            "PBN has the highest average NMI and the highest average ARI, as it has the highest ACC.",
            _all(*(partial(_best_average, t, "PBN", NCD_METHODS) for t in (e, "final_table_nmi", "final_table_ari"))),
            "final_table_ari",
        ),
        # Table 10 and Figure 6
        Claim(
            "silhouette-best",
            estimated,
            "Of six indices in PBN's latent space, the silhouette has the best mean rank.",
            partial(_index_has_rank, "silhouette", 0),
            "silhouette_results",
            as_is,
        ),
        Claim(
            "ch-second",
            estimated,
            "The Calinski-Harabasz index comes second.",
            partial(_index_has_rank, "calinski_harabasz", 1),
            "silhouette_results",
            as_is,
        ),
        Claim(
            "elbow-last",
            estimated,
            "The elbow method comes last.",
            partial(_index_has_rank, "elbow", -1),
            "silhouette_results",
            as_is,
        ),
        Claim(
            "indices-not-different",
            estimated,
            "With seven data sets, the indices do not differ significantly (Nemenyi test).",
            _indices_not_different,
            "cd_latent",
            as_is,
        ),
        Claim(
            "latent-helps-silhouette",
            "Appendix F",
            "The silhouette's mean error is smaller in PBN's latent space than in the original features.",
            _latent_helps_silhouette,
            "silhouette_results",
            as_is,
        ),
        Claim(
            "large-overestimates",
            "Appendix F",
            "Davies-Bouldin and Dunn overestimate grossly on some data sets.",
            _large_overestimates,
            "silhouette_results",
            as_is,
        ),
        Claim(
            "k-estimated-well",
            "Abstract and Section 8",
            "The number of novel classes can be estimated accurately in PBN's latent space.",
            _k_is_estimated_well,
            "silhouette_results",
            ("published", "searched"),
        ),
        # Figure 7
        *(
            Claim(id_, "Appendix C", says, judge, "perf_wrt_share", as_is)
            for id_, says, judge in (
                (
                    "share-decreasing",
                    "The accuracy of the methods falls almost always as more classes are novel.",
                    _decreasing,
                ),
                (
                    "share-deep-fall-faster",
                    "When many classes are novel, the deep methods fall faster than NCD k-means and NCD SC.",
                    _deep_fall_faster,
                ),
                (
                    "share-baseline-falls-most",
                    "Of the deep methods, the baseline falls most.",
                    _baseline_falls_most,
                ),
                (
                    "share-tabularncd-peak",
                    "TabularNCD peaks around 7 novel classes, for which it was tuned.",
                    _tabularncd_peaks,
                ),
                ("share-pbn-robust", "PBN is the best over a wide range.", _pbn_best_over_a_wide_range),
            )
        ),
        # Table 9
        Claim(
            "pbn-sc-default",
            "Appendix E",
            "Spectral clustering with default hyperparameters lifts PBN by 1.1 points on average.",
            partial(_lead, ("pbn_sc", "SC PBN default"), ("pbn_sc", "KM PBN"), 1.1),
            "pbn_sc",
            as_is,
        ),
        Claim(
            "pbn-sc-default-wins",
            "Appendix E",
            "PBN with spectral clustering by default hyperparameters beats PBN with k-means on five data sets.",
            partial(_wins, "pbn_sc", "SC PBN default", ("KM PBN",), 5),
            "pbn_sc",
            as_is,
        ),
        Claim(
            "pbn-sc-full",
            "Appendix E",
            "With its hyperparameters tuned as well, PBN with spectral clustering is 4.1 points below k-means.",
            partial(_lead, ("pbn_sc", "SC PBN full opt"), ("pbn_sc", "KM PBN"), -4.1),
            "pbn_sc",
            ("searched",),
        ),
        # Table 11
        Claim(
            "convergence-novel-only",
            "Appendix G",
            "Updating only the novel centroids on unlabelled rows is the best on five data sets.",
            partial(_wins, _CONVERGENCE, _NOVEL_ONLY[1], (_NOVEL_ON_ALL[1], _BOTH_ON_ALL[1]), 5),
            _CONVERGENCE,
            as_is,
        ),
        Claim(
            "convergence-known-worse",
            "Appendix G",
            "Updating the known centroids as well, on all rows, is always worse than updating the novel ones only, on "
            "unlabelled rows.",
            partial(_worse, _NOVEL_ONLY, [_BOTH_ON_ALL], 0),
            _CONVERGENCE,
            as_is,
        ),
    ]
    arithmetic = [
        ("printed-averages", known, "Every printed average is the mean of its column.", _printed_averages, n),
        ("printed-leads", known, "The leads of PBN given in the text follow from the tables.", _printed_leads, n),
        (
            "printed-never-worse",
            known,
            "NCD k-means is never worse than k-means, by the printed means.",
            _printed_never_worse,
            c,
        ),
        (
            "printed-once-worse",
            known,
            "NCD SC is only once worse than SC, by the printed means.",
            _printed_once_worse,
            c,
        ),
        ("printed-same-cell", known, "NCD SC has the same figures in Tables 3 and 4.", _same_cell_twice, n),
        ("printed-74", estimated, "NCD SC falls from 74.3 %.", _falls_from_74, n),
        (
            "printed-greatest-lead",
            estimated,
            "PBN's printed leads are all greater with k estimated than with k known.",
            _greatest_lead_printed,
            e,
        ),
        (
            "printed-known-centroids",
            "Appendix G",
            "Updating the known centroids, too, is always worse than the novel ones only, on unlabelled rows, by the "
            "printed means.",
            _known_centroids_always_worse_printed,
            _CONVERGENCE,
        ),
        (
            "printed-known-centroids-like-for-like",
            "Appendix G",
            "Updating the known centroids, too, is always worse than the novel ones only, both on all rows, by the "
            "printed means.",
            partial(_known_centroids_always_worse_printed, rival=_NOVEL_ON_ALL),
            _CONVERGENCE,
        ),
        (
            "printed-latent-range",
            "Appendix D",
            "The tuned latent sizes lie in the range searched, [5, d].",
            _latent_sizes_in_range,
            "hyperparameters",
        ),
        (
            "published-dropout",
            "Authors' files, Appendix D",
            "On Pendigits, where the estimate of k is right, TabularNCD's published values are those of known k.",
            _same_hyperparameters_on_pendigits,
            "hyperparameters",
        ),
        (
            "four-against-seven",
            known,
            "PBN has 4 hyperparameters, TabularNCD 7.",
            _number_of_hyperparameters,
            "hyperparameters",
        ),
        ("seventy-thirty", "Section 7.1", "Data without a given split are split 70 / 30.", _seventy_thirty, "data"),
        ("one-hot", "Section 7.1", "Categorical features are one-hot encoded.", _one_hot_encoded, "data"),
        ("features-of-mfeat", "Section 7.1", "m feat has 515 features.", _features_of_mfeat, "data"),
    ]
    return claims + [Claim(id_, place, says, judge, table, ("paper",)) for id_, place, says, judge, table in arithmetic]


CLAIMS = _claim_list()
"""Every claim, in the order of the paper's tables; the arithmetic inside the paper last."""

COLUMNS = [
    "id",
    "place",
    "chapter",
    "claim",
    "paper",
    "paper_verdict",
    *(name + suffix for name in ALL_VIEWS for suffix in ("", "_verdict")),
    "verdict",
    "without_variants",
    "missing",
    "caveat",
    "cells",
]


def paper_view(datasets: Sequence[str] = DATASETS) -> View:
    """The paper's own figures; its standard errors from its standard deviations over ten runs."""
    cells = {}
    for row in paper_results().itertuples():
        se = 0.0 if pd.isna(row.std) else row.std / np.sqrt(PAPER_RUNS)
        cells[row.table, row.metric, row.method, row.dataset] = Mean(row.value, se)
    return View("paper", cells, tuple(datasets))


def _our_view(name: str, runs: pd.DataFrame, folder: str | os.PathLike | None) -> View:
    """Our figures, "published", "searched" or "mended"; see the module's text."""
    origin = "published" if name == "published" else "searched"
    runs_of_figures, runs = runs, runs[(runs["variant"] == "") & runs["origin"].isin([origin, "none"])]
    groups = runs.groupby(["table", "method", "dataset"])
    measured: dict[tuple[str, str, str, str], Mean] = {}
    for (table, method, dataset), group in groups:
        for metric, column in {**METRIC_COLUMN, "seconds": "seconds"}.items():
            values = group[column].dropna()
            if metric in ("estimated k", "seconds") and len(values):
                measured[table, metric, method, dataset] = Mean(float(values.median()))
            elif len(values) >= MIN_RUNS:
                se = 100 * values.std(ddof=1) / np.sqrt(len(values))
                measured[table, metric, method, dataset] = Mean(100 * float(values.mean()), float(se))
    cells = dict(measured)
    # Cells of other tables that show the same runs.
    for row in paper_results().itertuples():
        for method in (row.method, MENDED) if row.method == "TabularNCD" else (row.method,):
            table, name_there = measured_as(row.table, method)
            found = measured.get((table, row.metric, name_there, row.dataset))
            if found is not None:
                cells[row.table, row.metric, method, row.dataset] = found
    substitutes = {"TabularNCD": MENDED} if name == "mended" else {}
    return View(name, cells, DATASETS, folder, runs_of_figures, substitutes)


def our_views(folder: str | os.PathLike | None = None) -> dict[str, View]:
    """Our figures in each way, by name."""
    runs = load_results(folder)
    return {name: _our_view(name, runs, folder) for name in ALL_VIEWS}


def judge(claim: Claim, view: View) -> tuple[Finding | None, str]:
    """The answer to a claim in one view, or None and what is missing."""
    view.used.clear()
    view.missing.clear()
    try:
        return claim.judge(view), ""
    except NotMeasured as error:
        return None, str(error)


def combine(outcomes: Collection[str]) -> str:
    """What several judgements agree on.

    Examples
    --------
    >>> from ncdlib.evidence.claims import combine
    >>> combine(["holds", "holds"]), combine(["holds", "does not hold"]), combine([])
    ('holds', 'holds in part', 'cannot be judged here')
    """
    outcomes = set(outcomes)
    return UNKNOWN if not outcomes else outcomes.pop() if len(outcomes) == 1 else IN_PART


def ledger(folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Judge every claim from the measurements in a folder (by default ``results/``).

    Returns
    -------
    DataFrame
        One row per claim: id; place in the paper; chapter of the book; claim; paper (the same question asked of the
        paper's own tables) and paper_verdict; published, searched, mended (our answers) and their verdicts; verdict;
        without_variants (the verdict from the data sets that are the originals); missing; caveat; cells (the (table,
        method) that it rests on, as stored).

    Examples
    --------
    >>> from ncdlib.evidence import ledger
    >>> claims = ledger()
    >>> set(claims["verdict"]) <= {"holds", "holds in part", "does not hold", "cannot be judged here"}
    True
    >>> claims.set_index("id").loc["printed-once-worse", "verdict"]
    'does not hold'
    """
    views = {"paper": paper_view()} | our_views(folder)
    originals = tuple(d for d in DATASETS if d not in VARIANTS)
    without = {name: replace(view, datasets=originals, used={}, missing={}) for name, view in views.items()}
    views["paper"].folder = folder
    return pd.DataFrame([_judge_all(claim, views, without) for claim in CLAIMS], columns=COLUMNS)


def _judge_all(claim: Claim, views: dict[str, View], without: dict[str, View]) -> dict:
    row = dict.fromkeys(COLUMNS, "") | {"id": claim.id, "place": claim.full_place, "chapter": claim.chapter}
    row["claim"] = claim.says
    outcomes, outcomes_without, missing, cells, datasets = [], [], [], {}, set()
    finding, reason = judge(claim, views["paper"])
    row["paper"] = finding.text if finding else "no numbers in the paper"
    row["paper_verdict"] = finding.outcome if finding else ""
    about_tabularncd = _concerns_tabularncd(claim, views["paper"])
    if claim.views == ("paper",):
        row["verdict"] = row["without_variants"] = combine([finding.outcome])
        return row
    for name in claim.views:
        if name == "mended" and not about_tabularncd:
            continue
        view = views[name]
        finding, reason = judge(claim, view)
        cells |= {measured_as(table, method): None for table, method, _ in view.used}
        datasets |= {d for _, _, d in set(view.used) - set(view.missing)}
        if finding is None:
            missing.append(f"{name}: {reason}")
            continue
        row[f"{name}_verdict"], row[name] = finding
        outcomes.append(finding.outcome)
        if view.missing:
            missing.append(f"{name}: {_summary_of_missing(view)}")
        finding, _ = judge(claim, without[name])
        outcomes_without += [finding.outcome] if finding else []
    variants = [PAPER_NAME_OF[d] for d in VARIANTS if d in datasets]
    row["verdict"], row["without_variants"] = combine(outcomes), combine(outcomes_without)
    row["missing"] = "; ".join(missing)
    if variants and outcomes:
        row["caveat"] = f"{' and '.join(variants)}: measured on a variant of the data"
    row["cells"] = "; ".join(f"{table} / {method}" for table, method in cells)
    return row


def _concerns_tabularncd(claim: Claim, paper: View) -> bool:
    """Whether the claim asks for TabularNCD; claims that the paper's tables cannot answer say so by their views."""
    asked = {method for _, method, _ in paper.used}
    return "TabularNCD" in asked or claim.table == "letter_corr"


def _summary_of_missing(view: View) -> str:
    by_method: dict[str, list[str]] = {}
    for table, method, dataset in view.missing:
        by_method.setdefault(f"{method} ({_number(table)})", []).append(PAPER_NAME_OF[dataset])
    return "; ".join(f"{method} on {', '.join(names)}" for method, names in by_method.items())
