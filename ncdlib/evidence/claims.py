"""The paper's claims, each with a function that answers it from the measurements, and the verdict that follows.

The rules are the same for all claims:

A figure
    agrees with the paper's when it is within max(2 paper std, 3 points). An average over data sets, or a lead between
    two averages, has no std in the paper: 3 points. A lead that is right in its sign but further away is "holds in
    part"; so is one that is near but even where the paper's, over all seven data sets, is not. A lead that is even and
    further away, or settled the other way, fails.
An ordering
    of two methods on a data set is settled when the difference of their means is more than twice its standard error
    (from the spread of the runs) and more than half a point. Otherwise they are even. Over several data sets the
    differences are averaged, and their standard errors combined. Even where the paper has a winner is "holds in part".
A count
    ("never worse", "the best on four data sets") that misses the claimed one by a single data set is "holds in part".
    Where the data sets not measured yet could change the answer, it is not judged.
    The best method of a data set is the one with the highest mean, as in the paper's bold print. A count of wins that
    is missed, but would be reached with the data sets where no rival is settled ahead, is "holds in part".
Too little
    measured, that is less than three runs of a cell or less than five data sets of a comparison, is "cannot be
    judged here". Where five or six of the seven are there, a lead is compared with the paper's over the same ones.
    An estimated number of classes is the median of the runs there are, one being enough as in the paper.

What else a claim needs (half of a gain, a rank, a share of a curve) stands with its function below.

Every claim is judged up to three times: with the authors' published hyperparameters ("published"), with those of our
own hidden-class search ("searched"), and, where TabularNCD is concerned, with its ``top_k`` taken as the fraction that
the text describes and tuned by a search of its own ("mended"). The verdict is what these agree on; "holds in part"
where they do not. Claims that can be checked inside the paper are answered from its own tables, exactly.
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
from sklearn.metrics import adjusted_rand_score

import ncdlib
from ncdlib.datasets import DatasetInfo
from ncdlib.evidence.compare import METRIC_COLUMN, hidden_and_novel_ari, measured_as
from ncdlib.evidence.experiments import FULL_OPT, MENDED
from ncdlib.evidence.measure import INDEX_NAMES
from ncdlib.evidence.paper import (
    DATASETS,
    PAPER_DATA,
    PAPER_NAME_OF,
    PAPER_NUMBER,
    paper_results,
    published_hyperparameters,
)
from ncdlib.evidence.results import FEATURES_METHOD, load_results, results_folder

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be judged here"
VERDICTS = (HOLDS, IN_PART, FAILS, UNKNOWN)

POINTS = 3.0  # a figure without std agrees within so many points
ROUNDING = 0.15  # the difference of two printed averages is exact within this
STANDARD_ERRORS = 2.0
SMALLEST_DIFFERENCE = 0.5  # of two means, in points; less is even whatever the standard error
SIGNIFICANCE = 0.05
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
WITHOUT_RECONSTRUCTION = "PBN: without the reconstruction"
CLUSTERED_WHERE_TUNED = f"{FULL_OPT}: clusters of the train rows"
_METRIC = {"final_table_nmi": "NMI", "final_table_ari": "ARI", "silhouette_results": "estimated k"}


class Finding(NamedTuple):
    """An answer: how it bears on the claim, and the numbers.

    Examples
    --------
    >>> from ncdlib.evidence.claims import HOLDS, Finding
    >>> Finding(HOLDS, "PBN 82.8, Baseline 46.1").outcome
    'holds'
    """

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

    Examples
    --------
    >>> from ncdlib.evidence.claims import paper_view
    >>> view = paper_view()
    >>> lead = view.lead(("ncd", "PBN"), ("ncd", "Baseline"), "pendigits")
    >>> lead.sign  # ahead, beyond the noise
    1
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
    """`cell` is ahead of `rival` on average, by `points` only; a rival that is ahead itself is half of the claim."""
    lead, points, text = _leads(cell, rival, points, view)
    close = lead.sign >= 0 and abs(lead.value - points) <= view.tolerance
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
        f"{_METRIC.get(table, 'ACC')}: {view.method(method)} {view.average(table, method, names).value:.1f}, "
        f"next best {view.method(best_rival)} "
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
    worst = {d: min((view.lead((table, method), (table, m), d) for m in rivals), key=lambda x: x.value) for d in names}
    won = [d for d, lead in worst.items() if lead.value >= 0]
    even = [
        d for d in names if d not in won and all(view.lead((table, method), (table, m), d).sign >= 0 for m in rivals)
    ]

    def outcome(n_more: int) -> str:
        n_missed = at_least - len(won) - n_more
        return IN_PART if 0 < n_missed <= len(even) else _by_count(n_missed)

    if outcome(0) != outcome(len(view.datasets) - len(names)):  # what is not measured may be won
        raise NotMeasured(
            f"{view.method(method)} is the best on {len(won)} of {len(names)} data sets; the others decide"
        )
    text = f"{view.method(method)} is the best on {len(won)} of {_over(names)}: {_names(won)}"
    return Finding(outcome(0), text + (f"; even with the best on {_names(even)}" if even else ""))


def _always_ahead(cell: tuple[str, str], rival: tuple[str, str], exceptions: int, view: View) -> Finding:
    """`cell` is ahead of `rival`, settled, on every data set but for so many."""
    names = view.measured([cell, rival], at_least=len(view.datasets))
    leads = {d: view.lead(cell, rival, d) for d in names}
    ahead = [d for d, lead in leads.items() if lead.sign > 0]
    others = ", ".join(f"{PAPER_NAME_OF[d]} ({lead})" for d, lead in leads.items() if d not in ahead)
    text = f"{view.method(cell[1])} ahead of {view.method(rival[1])} on {len(ahead)} of {_over(names)}; not on: "
    return Finding(_by_count(len(names) - len(ahead) - exceptions), text + (others or "none"))


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
    """NCD k-means is settled ahead of NCD SC on some data sets, and behind it on others."""
    names = view.measured(("clust", m) for m in ("NCD k-means", "NCD SC"))
    leads = {d: view.lead(("clust", "NCD k-means"), ("clust", "NCD SC"), d) for d in names}
    directions = {lead.sign for lead in leads.values()} - {0}
    text = ", ".join(f"{PAPER_NAME_OF[d]} {lead}" for d, lead in leads.items())
    return Finding(HOLDS if len(directions) == 2 else FAILS, f"NCD k-means against NCD SC: {text}")


def _known_classes_make_the_gain(view: View) -> Finding:
    """NCD k-means stays ahead of a k-means that chooses among its starts as it does, by at least half of its lead.

    If the two are even, nothing is left that the known classes could have done: the claim fails.
    """
    ours, plain, alike = ("clust", "NCD k-means"), ("clust", "k-means"), ("choices", CHOSEN_ALIKE)
    names = view.measured([ours, plain, alike])
    gain, rest = (mean_of(view.lead(ours, rival, d) for d in names) for rival in (plain, alike))
    outcome = FAILS if rest.sign <= 0 else HOLDS if rest.value >= gain.value / 2 else IN_PART
    return Finding(
        outcome,
        f"NCD k-means against k-means: {gain} points; against k-means that chooses the best of its starts by the same "
        f"rule: {rest} points, over {_over(names)}",
    )


def _baseline_wins_letter(view: View) -> Finding:
    """The authors' split of Letter is not known: where we have measured others as well, the lead is that over all."""
    usual = _beats(("ncd", "Baseline"), ("ncd", "PBN"), "letter", view)
    if view.runs is None or view.name != "published":
        return usual
    splits = view.runs[view.runs["table"] == "letter_splits"].pivot_table("acc", "variant", "method")
    if splits.empty:
        return usual
    others = 100 * (splits["Baseline"] - splits["PBN"])
    leads = [view.lead(("ncd", "Baseline"), ("ncd", "PBN"), "letter").value, *others]
    lead = Mean(float(np.mean(leads)), float(stats.sem(leads)))
    return Finding((FAILS, IN_PART, HOLDS)[lead.sign + 1], f"{usual.text}; over {len(leads)} splits {lead}")


def _reconstruction_helps(view: View) -> Finding:
    """PBN is ahead of itself with w = 1, all else equal."""
    full, without = ("ncd", "PBN"), ("choices", WITHOUT_RECONSTRUCTION)
    names = view.measured([full, without])
    leads = {d: view.lead(full, without, d) for d in names}
    lead = mean_of(leads.values())
    shown = ", ".join(f"{PAPER_NAME_OF[d]} {x}" for d, x in leads.items())
    text = f"k known, PBN with the term against w = 1, all else as published: {lead}; {shown}"
    behind = [d for d, x in leads.items() if x.sign < 0]
    return Finding(
        (FAILS, IN_PART, HOLDS)[lead.sign + 1],
        text + (f"; settled the other way on {_names(behind)}" if behind else ""),
    )


def _tuned_clustering_overfits(view: View) -> Finding:
    """PBN with tuned spectral clustering loses to k-means, and by more than half as much where only the classes change.

    Its two values are found on the many train rows and used on the few test rows. What is lost by that, and is not
    where the train rows are clustered, has nothing to do with the classes.
    """
    tuned, alike, plain = ("pbn_sc", FULL_OPT), ("choices", CLUSTERED_WHERE_TUNED), ("pbn_sc", "KM PBN")
    names = view.measured([tuned, alike, plain])
    loss, rest = (mean_of(view.lead(cell, plain, d) for d in names) for cell in (tuned, alike))
    outcome = FAILS if rest.sign >= 0 or loss.sign >= 0 else HOLDS if rest.value <= loss.value / 2 else IN_PART
    return Finding(
        outcome,
        f"{FULL_OPT} against KM PBN: {loss} points; with the clusters of the train rows, where the values were found: "
        f"{rest}, over {_over(names)}",
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
    fall, points, text = _leads(("ncd", method), ("ncd_k_est", method), points, view)
    outcome = HOLDS if fall.value <= points + view.tolerance else FAILS
    return Finding(outcome, f"{view.method(method)} with k known against k estimated:" + text.partition(":")[2])


def _n_outputs(view: View, dataset: str) -> float:
    """How many clusters TabularNCD was trained for; the paper prints what the features' silhouette says."""
    if view.name == "paper":
        return view.mean("silhouette_results", FEATURES_METHOD, dataset).value
    return view.mean("ncd_k_est", "TabularNCD", dataset, "estimated k").value


def _overestimated(view: View, dataset: str) -> tuple[Mean, str]:
    """What the ACC of TabularNCD changes by when it is given too many clusters, and a text."""
    k, k_true = _n_outputs(view, dataset), len(ncdlib.DATASETS[dataset].novel_classes)
    change = view.lead(("ncd_k_est", "TabularNCD"), ("ncd", "TabularNCD"), dataset)
    if k <= k_true:
        raise NotMeasured(f"an estimate that is too large; for {PAPER_NAME_OF[dataset]} it is {k:.0f} here")
    return change, (
        f"{PAPER_NAME_OF[dataset]}: {k:.0f} classes by the features' silhouette, {k_true} in truth; "
        f"{view.method('TabularNCD')} {change} points, each setting with hyperparameters of its own"
    )


def _superfluous_outputs_unused(view: View) -> Finding:
    """Rows in superfluous clusters count as wrong, so a high ACC bounds their share: a tenth at most holds.

    Where it is more, no loss of ACC is half of the claim. A loss says nothing: what is wrong need not be superfluous.
    """
    change, text = _overestimated(view, "optdigits")
    wrong = 100 - view.mean("ncd_k_est", "TabularNCD", "optdigits").value
    if wrong > 10 and change.sign < 0:
        raise NotMeasured(f"an ACC high enough to bound the rows in superfluous clusters: {wrong:.0f} % are wrong")
    outcome = HOLDS if wrong <= 10 else IN_PART
    return Finding(outcome, f"{text}; at most {wrong:.1f} % of the rows are in superfluous clusters")


def _loss_by_overestimate(view: View) -> Finding:
    change, text = _overestimated(view, "letter")
    return Finding((HOLDS, IN_PART, FAILS)[change.sign + 1], text)


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


def _index_name(short: str) -> str:
    return INDEX_NAMES[short].partition(" (")[0]


def _rank_text(ranks: pd.Series) -> str:
    return "mean ranks " + ", ".join(f"{_index_name(short)} {rank:.1f}" for short, rank in ranks.items())


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
    return Finding(HOLDS if smallest > SIGNIFICANCE else FAILS, text)


def _latent_helps_silhouette(view: View) -> Finding:
    """The mean error is smaller, significantly; if it is only smaller, half of the claim."""
    methods = (INDEX_NAMES["silhouette"], FEATURES_METHOD)
    names = view.measured([("silhouette_results", m) for m in methods])
    errors = pd.DataFrame({m: {d: abs(_error_of_k(view, "silhouette_results", m, d)) for d in names} for m in methods})
    latent, features = errors.mean()
    differences = errors[methods[0]] - errors[methods[1]]
    p = float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0
    outcome = FAILS if latent >= features else HOLDS if p <= SIGNIFICANCE else IN_PART
    n_changed = int((differences != 0).sum())  # the test leaves the others out
    largest = errors.max(axis=1).idxmax()
    without = errors.drop(index=largest).mean()
    return Finding(
        outcome,
        f"mean error {latent:.1f} in PBN's latent space, {features:.1f} in the features, {_over(names)} (p of "
        f"Wilcoxon's test {p:.2f}, which cannot be below {min(1, 2 * 0.5**n_changed):.2f} where {n_changed} differ); "
        "without "
        f"{PAPER_NAME_OF[largest]} {without.iloc[0]:.1f} and {without.iloc[1]:.1f}",
    )


def _large_overestimates(view: View) -> Finding:
    found = {}
    for short in ("davies_bouldin", "dunn"):
        names = view.measured([("silhouette_results", INDEX_NAMES[short])])
        values = {d: view.mean("silhouette_results", INDEX_NAMES[short], d).value for d in names}
        found[short] = {d: k for d, k in values.items() if k > 5 * len(ncdlib.DATASETS[d].novel_classes)}
    text = "; ".join(
        f"{_index_name(short)}: " + (", ".join(f"{PAPER_NAME_OF[d]} {k:.0f}" for d, k in large.items()) or "none")
        for short, large in found.items()
    )
    n_indices = sum(bool(large) for large in found.values())
    return Finding((FAILS, IN_PART, HOLDS)[n_indices], f"more than five times the truth: {text}")


def _far_estimates(view: View, table: str, method: str, datasets: Iterable[str]) -> tuple[list[str], str]:
    """The data sets whose estimated number (median of the runs) is off by more than one class, and a text."""
    errors = {d: _error_of_k(view, table, method, d) for d in datasets}
    far = [d for d, e in errors.items() if abs(e) > 1]
    shown = ", ".join(f"{PAPER_NAME_OF[d]} ({errors[d]:+g})" for d in far) or "none"
    return far, f"mean error {np.mean(np.abs(list(errors.values()))):.1f}, off by more than one on {shown}"


def _k_is_estimated_well(view: View) -> Finding:
    """By the silhouette in PBN's latent space: within one class of the truth on all data sets but one.

    Table 10 has PBN's hyperparameters for known k. In the runs of Table 5 the hyperparameters are those of estimated k,
    as they would be in earnest; the paper does not print their estimates.
    """
    in_table_10, in_table_5 = ("silhouette_results", INDEX_NAMES["silhouette"]), ("ncd_k_est", "PBN")
    sources = {"paper": [in_table_10], "published": [in_table_10, in_table_5], "searched": [in_table_5]}
    outcomes, texts = [], []
    for cell in sources[view.name]:
        names = view.measured([cell])
        far, text = _far_estimates(view, *cell, names)
        outcomes.append(_by_count(len(far) - 1))
        texts.append(f"{_number(cell[0])}: {text}, of {_over(names)}")
    guess = np.mean([abs(5 - len(ncdlib.DATASETS[d].novel_classes)) for d in view.datasets])
    return Finding(combine(outcomes), "; ".join(texts) + f"; to guess five everywhere: mean error {guess:.1f}")


def _others_cannot_count(view: View) -> Finding:
    """By the measure of `_k_is_estimated_well`, the classes can be counted in neither space, and less so than in PBN's.

    A space that is far off on no more data sets than PBN's is no contrast to it.
    """
    rivals = ("Baseline", "NCD SC")
    names = view.measured(("ncd_k_est", m) for m in (*rivals, "PBN"))
    found = {m: _far_estimates(view, "ncd_k_est", m, names) for m in (*rivals, "PBN")}
    n_can = sum(len(found[m][0]) <= max(1, len(found["PBN"][0])) for m in rivals)
    return Finding(
        (HOLDS, IN_PART, FAILS)[n_can],
        "; ".join(f"{m}: {text}" for m, (_, text) in found.items()) + f"; {_over(names)}",
    )


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


def _pbn_ahead_in_trials(
    what: str, compare: Callable[[View, str], tuple[int, str]], datasets: Iterable[str], at_least: int, view: View
) -> Finding:
    """PBN's trials are ahead of TabularNCD's on most data sets and behind on none; behind as often as ahead: a failure.

    `compare` says for a data set whether PBN is ahead (1), even (0) or behind (-1), with the numbers.
    """
    found = {}
    for dataset in datasets:
        try:
            found[dataset] = compare(view, dataset)
        except NotMeasured:
            continue
    rival = view.method("TabularNCD")
    if len(found) < at_least:
        raise NotMeasured(f"trials of PBN and {rival} on {at_least} of {_names(datasets)}; there are {len(found)}")
    signs = [sign for sign, _ in found.values()]
    ahead, behind = signs.count(1), signs.count(-1)
    outcome = FAILS if behind and behind >= ahead else HOLDS if not behind and ahead > len(found) / 2 else IN_PART
    text = "; ".join(f"{PAPER_NAME_OF[d]} {numbers}" for d, (_, numbers) in found.items())
    return Finding(outcome, f"{what}, PBN / {rival}: ahead on {ahead}, behind on {behind} of {len(found)}: {text}")


def _compare_correlations(view: View, dataset: str) -> tuple[int, str]:
    (pbn, se, _), (other, other_se, _) = (_correlation(view, m, dataset) for m in ("PBN", "TabularNCD"))
    z = (np.arctanh(pbn) - np.arctanh(other)) / np.hypot(se, other_se)
    return int(np.sign(z)) * (abs(z) > STANDARD_ERRORS), f"{pbn:.2f} / {other:.2f}"


def _correlation_stronger(dataset: str, view: View) -> Finding:
    sign, _ = _compare_correlations(view, dataset)
    pbn, other = (_correlation_interval(*_correlation(view, m, dataset)[:2]) for m in ("PBN", "TabularNCD"))
    text = f"{PAPER_NAME_OF[dataset]}: r of PBN {pbn}, of {view.method('TabularNCD')} {other}"
    return Finding((FAILS, IN_PART, HOLDS)[sign + 1], text)


def _correlation_stronger_elsewhere(view: View) -> Finding:
    others = [d for d in view.datasets if d != "letter"]  # with Letter, MIN_DATASETS
    return _pbn_ahead_in_trials("r", _compare_correlations, others, at_least=MIN_DATASETS - 1, view=view)


def _share_beaten_by_the_chosen(view: View, method: str, dataset: str) -> float:
    """The share of the other trials that the one with the best hidden ARI beats in novel ARI."""
    both = _trials(view, method, dataset)
    return float((both["novel"] < both.loc[both["hidden"].idxmax(), "novel"]).sum() / (len(both) - 1))


def _compare_choices(view: View, dataset: str) -> tuple[int, str]:
    """Even within a tenth of the trials. And a choice that beats less than half of them is no better than a draw by
    lot, and ahead of nothing."""
    pbn, other = (_share_beaten_by_the_chosen(view, m, dataset) for m in ("PBN", "TabularNCD"))
    even = abs(pbn - other) < 0.1 or max(pbn, other) <= 0.5
    return 0 if even else int(np.sign(pbn - other)), f"{pbn:.2f} / {other:.2f}"


def _fewer_hyperparameters_overfit_less(view: View) -> Finding:
    what = "share of the other trials that the chosen one beats on the novel classes"
    return _pbn_ahead_in_trials(what, _compare_choices, view.datasets, at_least=MIN_DATASETS, view=view)


def _hidden_predicts_novel(view: View) -> Finding:
    """PBN's hidden and novel ARI go together: r is above 0 beyond its standard error, on all data sets but one.

    On some of them only, the claim holds in part; on none, or with r below 0 on some, it fails.
    """
    found = {}
    for dataset in view.datasets:
        try:
            found[dataset] = _correlation(view, "PBN", dataset)
        except NotMeasured:
            continue
    if len(found) < MIN_DATASETS:
        raise NotMeasured(f"trials of PBN on {MIN_DATASETS} data sets; there are {len(found)}")
    useful = [d for d, (r, se, _) in found.items() if np.arctanh(r) > STANDARD_ERRORS * se]
    opposite = [d for d, (r, se, _) in found.items() if np.arctanh(r) < -STANDARD_ERRORS * se]
    outcome = FAILS if opposite or not useful else HOLDS if len(useful) >= len(found) - 1 else IN_PART
    numbers = ", ".join(
        f"{PAPER_NAME_OF[d]} {r:.2f} ({_share_beaten_by_the_chosen(view, 'PBN', d):.0%})"
        for d, (r, _, _) in found.items()
    )
    text = f"r settled above 0 on {len(useful)} of {len(found)}, below on {len(opposite)}"
    return Finding(outcome, f"{text} (and how many of the other trials the chosen one beats): {numbers}")


def _hyperparameters_hold_tabularncd_back(table: str, view: View) -> Finding:
    """Mended, TabularNCD has as many hyperparameters as before: what it gains is not due to their number.

    Where it stays behind PBN, settled, the number may be the reason or not: half of the claim.
    """
    names = view.measured([(table, m) for m in ("PBN", "TabularNCD", MENDED)])
    gap, gain, rest = (
        mean_of(view.lead((table, ahead), (table, behind), d) for d in names)
        for ahead, behind in (("PBN", "TabularNCD"), (MENDED, "TabularNCD"), ("PBN", MENDED))
    )
    held_back = gap.sign > 0 and rest.sign > 0
    text = (
        f"behind PBN by {gap}; with top_k as a fraction it gains {gain}, with seven as before, and PBN's lead is {rest}"
    )
    return Finding(
        IN_PART if held_back else FAILS,
        f"{text}, {_over(names)}" + ("; for this the number may be the reason, which is no proof" if held_back else ""),
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
    shared = "seconds a run, NCD SC (its ten share one embedding of the test rows; tuning apart) / PBN (ten trainings)"
    return Finding(_by_count(len(slower)), f"{shared}: {text}")


# -- the number of novel classes grows (Figure 7) ---------------------------------------------------------------------


def _share_runs(view: View, method: str) -> pd.Series:
    """ACC in percent by the number of novel classes of Letter, from 2 (one is always found), and their combination."""
    view.used["perf_wrt_share", method, "letter"] = None
    if view.runs is None:
        raise NotMeasured("numbers: the paper shows a figure")
    runs = view.runs
    runs = runs[(runs["table"] == "perf_wrt_share") & (runs["method"] == method)].dropna(subset=["acc"])
    runs = runs.assign(novel=runs["variant"].str.extract(r"^(\d+) novel", expand=False).astype(int))
    runs = runs[(runs["novel"] > 1) & (runs["novel"].map(runs["novel"].value_counts()) >= MIN_RUNS)]
    acc = 100 * runs.groupby(["novel", "variant"])["acc"].mean()
    numbers = acc.index.unique("novel")
    if len(numbers) < 8 or max(numbers) < 19:
        view.missing["perf_wrt_share", method, "letter"] = None
        raise NotMeasured(f"{method} at enough numbers of novel classes (Figure 7)")
    return acc


def _curve(view: View, method: str) -> pd.Series:
    """Mean ACC by the number of novel classes."""
    return _share_runs(view, method).groupby("novel").mean()


def _share_lead(view: View, method: str, rival: str, at_least: int = 2) -> Mean:
    """The mean lead over all numbers of novel classes from `at_least` on, paired by the combination of classes."""
    leads = (_share_runs(view, method) - _share_runs(view, rival)).dropna()
    by_number = leads[leads.index.get_level_values("novel") >= at_least].groupby("novel")
    return mean_of(Mean(lead, se) for lead, se in zip(by_number.mean(), by_number.sem(), strict=True))


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


def _late_falls(view: View, methods: Iterable[str]) -> tuple[pd.Series, str]:
    """What each method loses from the middle of the curve to its end, as a share of the middle, and a text."""
    curves = _curves(view, methods)
    middle, end = curves.index[len(curves) // 2], curves.index[-1]
    falls = 1 - curves.loc[end] / curves.loc[middle]
    shares = ", ".join(f"{m} {f:.0%}" for m, f in falls.items())
    return falls, f"share of the ACC at {middle} novel classes that is lost at {end}: {shares}"


def _deep_fall_faster(view: View) -> Finding:
    falls, text = _late_falls(view, SHARE_METHODS)
    pairs = [falls[deep] > falls[other] for deep in DEEP for other in ("NCD k-means", "NCD SC")]
    return Finding(HOLDS if all(pairs) else FAILS if not any(pairs) else IN_PART, text)


def _baseline_falls_most(view: View) -> Finding:
    falls, text = _late_falls(view, DEEP)
    return Finding(HOLDS if falls.idxmax() == "Baseline" else FAILS, text)


def _tabularncd_peaks(view: View) -> Finding:
    curve, noise = _curve(view, "TabularNCD"), _share_runs(view, "TabularNCD").groupby("novel").sem()
    peak = int(curve.idxmax())
    bumps = curve.index[(curve > curve.shift()) & (curve > curve.shift(-1))]  # higher than both neighbours
    around_seven = [n for n in bumps if 5 <= n <= 9]
    outcome = HOLDS if peak in around_seven else IN_PART if around_seven else FAILS
    local = ", ".join(f"{curve[n]:.1f} ± {noise[n]:.1f} at {n}" for n in bumps) or "none"
    return Finding(outcome, f"highest ACC {curve.max():.1f} at {peak} novel classes; local peaks: {local}")


def _pbn_best_over_a_wide_range(view: View) -> Finding:
    """The highest mean at more than half of the numbers, and, over all of them, a settled lead over each rival."""
    curves = _curves(view, SHARE_METHODS)
    won = list(curves.index[curves.idxmax(axis=1) == "PBN"])
    leads = {m: _share_lead(view, "PBN", m) for m in SHARE_METHODS if m != "PBN"}
    parts = [len(won) > len(curves) / 2, all(lead.sign > 0 for lead in leads.values())]
    where = f" ({', '.join(map(str, won))} novel classes)" if won else ""
    shown = ", ".join(f"{m} {lead}" for m, lead in leads.items())
    return Finding(
        (FAILS, IN_PART, HOLDS)[sum(parts)],
        f"PBN has the highest mean at {len(won)} of {len(curves)} numbers{where}; over all of them, against {shown}",
    )


def _deep_fail_with_few_known(view: View) -> Finding:
    """At the largest number of novel classes, every deep method is behind NCD k-means and NCD SC."""
    last = int(_curves(view, SHARE_METHODS).index.max())
    leads = {(m, r): _share_lead(view, m, r, last) for m in DEEP for r in ("NCD k-means", "NCD SC")}
    behind = [lead.sign < 0 for lead in leads.values()]
    text = "; ".join(f"{method} against {rival} {lead}" for (method, rival), lead in leads.items())
    return Finding(
        HOLDS if all(behind) else IN_PART if any(behind) else FAILS, f"at {last} novel classes of 26: {text}"
    )


def _pbn_learns_from_few_known(view: View) -> Finding:
    """With five known classes or fewer, k-means in PBN's space is ahead of NCD k-means in the features."""
    lead = _share_lead(view, "PBN", "NCD k-means", at_least=26 - 5)
    return Finding((FAILS, IN_PART, HOLDS)[lead.sign + 1], f"five known letters or fewer: PBN {lead} points ahead")


# -- inside the paper -------------------------------------------------------------------------------------------------

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
    for table, method, rival, printed in _PRINTED_LEADS:
        right = mean_of(view.lead((table, method), (table, rival), d) for d in DATASETS).value
        if abs(right - printed) > ROUNDING:
            wrong.append(f"{method} over {rival} in {PAPER_NUMBER[table]}: printed {printed:.1f}, is {right:.1f}")
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


def _about_half(what: str, share_of: Callable[[DatasetInfo], float], view: View) -> Finding:
    """A share of the classes is between 40 and 60 % on every data set."""
    share = {d: share_of(ncdlib.DATASETS[d]) for d in DATASETS}
    text = ", ".join(f"{PAPER_NAME_OF[d]} {s:.0%}" for d, s in share.items())
    return Finding(_exact(all(0.4 <= s <= 0.6 for s in share.values())), f"{what}: {text}")


def _share_novel(info: DatasetInfo) -> float:
    return len(info.novel_classes) / (len(info.known_classes) + len(info.novel_classes))


def _share_hidden(info: DatasetInfo) -> float:
    return info.n_hidden / len(info.known_classes)


def _tangled_is_penalised(view: View) -> Finding:
    hidden = np.repeat([0, 1], 20)  # the score sees the rows of two hidden classes only, whoever shares their clusters
    shared = adjusted_rand_score(hidden, hidden)  # each class whole, in one cluster with a whole novel class
    torn = adjusted_rand_score(hidden, np.tile([0, 1], 20))  # each class halved between two such clusters
    text = f"each whole in one cluster with a novel class {shared:.2f}, as if apart; each torn between two {torn:.2f}"
    n_penalised = sum(score < 1 for score in (shared, torn))
    return Finding((FAILS, IN_PART, HOLDS)[n_penalised], f"ARI on two hidden classes: {text}")


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
    return Finding(
        _exact(printed > ours),
        f"all attributes of Census are categories; features printed {printed}, columns of the file {ours}",
    )


def _features_of_mfeat(view: View) -> Finding:
    ours = _n_features(view, "mfeat")
    printed = PAPER_DATA.loc["mfeat", "features"]
    largest = published_hyperparameters().query("dataset == 'mfeat' and parameter == 'latent_dim'")["value"].max()
    text = (
        f"printed {printed}; the file mfeat-fac without its first column has {ours}; largest tuned latent {largest:.0f}"
    )
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
    "kfold": 7,
    "kfold_splits": 7,
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

    Examples
    --------
    >>> from ncdlib.evidence import CLAIMS
    >>> claim = CLAIMS[0]
    >>> claim.says, claim.full_place, claim.chapter
    ('NCD k-means is never worse than k-means.', 'Section 7.2.1, Table 3', 10)
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
            "NCD k-means is ahead of k-means on average, by 2.6 points.",
            partial(_lead, (c, "NCD k-means"), (c, "k-means"), 2.6),
            c,
            as_is,
        ),
        Claim(
            "known-classes-make-the-gain",
            known,
            "The lead of NCD k-means shows that simple clustering can benefit from the known classes.",
            _known_classes_make_the_gain,
            c,
            as_is,
        ),
        Claim(
            "ncd-sc-gains-from-known",
            known,
            "NCD SC is ahead of SC on average, by 5.3 points.",
            partial(_lead, (c, "NCD SC"), (c, "SC"), 5.3),
            c,
        ),
        Claim(
            "clustering-reliably-better",
            "Section 8",
            "Unsupervised clustering algorithms reliably improve by simple changes that use the known classes.",
            _all(
                partial(_always_ahead, (c, "NCD k-means"), (c, "k-means"), 1),
                partial(_always_ahead, (c, "NCD SC"), (c, "SC"), 1),
            ),
            c,
            ("published", "searched"),
        ),
        Claim(
            "no-universal-clustering",
            known,
            "Of NCD k-means and NCD SC, neither is the better one on all data sets.",
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
            "With k known, PBN is 21.6 points ahead of the baseline on average (by the text; 20.7 by the table).",
            partial(_lead, (n, "PBN"), (n, "Baseline"), 20.7),
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
            "No deep method beats PBN, but for the baseline on Letter.",
            partial(_worse, (n, "PBN"), [(n, "Baseline"), (n, "TabularNCD")], [("letter", "Baseline")]),
            n,
        ),
        Claim(
            "baseline-wins-letter",
            known,
            "The baseline beats PBN on Letter.",
            _baseline_wins_letter,
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
            "With k known, NCD SC is ahead of PBN on two data sets.",
            partial(_wins, n, "NCD SC", ("PBN",), 2),
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
            ("published", "searched"),  # a printed figure of this method, not of the mended one
        ),
        *(
            Claim(
                f"seven-hyperparameters{suffix}",
                place,
                f"With k {setting}, TabularNCD is held back by the number of its hyperparameters.",
                partial(_hyperparameters_hold_tabularncd_back, table),
                table,
                ("searched",),
            )
            for table, setting, suffix, place in (
                (n, "known", "", known),
                (e, "estimated", "-estimated", "Sections 7.2.2 and 8"),
            )
        ),
        Claim(
            "ncd-sc-quicker",
            known,
            "NCD SC takes less time than PBN (ten runs, with the hyperparameters given).",
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
            "On Optdigits, where k is too large, TabularNCD does well: it probably leaves superfluous outputs unused.",
            _superfluous_outputs_unused,
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
            "The baseline loses 3.3 points on average when k is estimated (by the tables; 2.3 by the text).",
            partial(_change_when_estimated, "Baseline", -3.3),
            e,
        ),
        Claim(
            "ncd-sc-falls",
            estimated,
            "NCD SC loses 24.1 points on average when k is estimated (by the tables; 22.1 by the text).",
            partial(_change_when_estimated, "NCD SC", -24.1),
            e,
        ),
        *(
            Claim(
                f"{method.lower().replace(' ', '-')}-average-estimated",
                estimated,
                f"With k estimated, {name} reaches {value} % on average.",
                partial(_average, e, method, value),
                e,
                ("published", "searched"),
            )
            for method, name, value in (
                ("Baseline", "the baseline", 53.4),
                ("NCD SC", "NCD SC", 52.2),
                ("TabularNCD", "TabularNCD", 54.7),
            )
        ),
        Claim(
            "pbn-stays",
            estimated,
            "PBN keeps 71.0 % on average when k is estimated (6.3 points less than with k known, by the tables).",
            _all(partial(_average, e, "PBN", 71.0), partial(_stays_when_estimated, "PBN", 6.3)),
            e,
        ),
        Claim(
            "others-cannot-count",
            estimated,
            "In contrast to PBN, the baseline and NCD SC find no space in which the novel classes can be counted.",
            _others_cannot_count,
            e,
            ("published", "searched"),
        ),
        Claim(
            "reconstruction-helps",
            estimated,
            "It is the reconstruction term that gives PBN a space in which the unlabelled rows are well represented.",
            _reconstruction_helps,
            e,
            as_is,
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
            "cd_latent",
            as_is,
        ),
        Claim(
            "ch-second",
            estimated,
            "The Calinski-Harabasz index comes second.",
            partial(_index_has_rank, "calinski_harabasz", 1),
            "cd_latent",
            as_is,
        ),
        Claim(
            "elbow-last",
            estimated,
            "The elbow method comes last.",
            partial(_index_has_rank, "elbow", -1),
            "cd_latent",
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
            "The silhouette's mean error is significantly smaller in PBN's latent space than in the original features.",
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
            Claim(id_, place, says, judge, "perf_wrt_share", as_is)
            for id_, place, says, judge in (
                (
                    "share-decreasing",
                    "Appendix C",
                    "The accuracy of the methods falls almost always as more classes are novel.",
                    _decreasing,
                ),
                (
                    "share-deep-fall-faster",
                    "Appendix C",
                    "When many classes are novel, the deep methods fall faster than NCD k-means and NCD SC.",
                    _deep_fall_faster,
                ),
                (
                    "share-baseline-falls-most",
                    "Appendix C",
                    "Of the deep methods, the baseline falls most.",
                    _baseline_falls_most,
                ),
                (
                    "share-tabularncd-peak",
                    "Appendix C",
                    "TabularNCD peaks around 7 novel classes, for which it was tuned.",
                    _tabularncd_peaks,
                ),
                (
                    "share-pbn-robust",
                    "Section 7.2.1 and Appendix C",
                    "PBN outperforms the others over a wide range.",
                    _pbn_best_over_a_wide_range,
                ),
                (
                    "share-deep-fail",
                    "Section 7.2.1",
                    "Deep methods tend to fail when too few classes are known.",
                    _deep_fail_with_few_known,
                ),
                (
                    "share-pbn-few-known",
                    "Appendix C",
                    "PBN still extracts relevant information when few classes are known.",
                    _pbn_learns_from_few_known,
                ),
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
        Claim(
            "pbn-sc-overfits",
            "Appendix E",
            "PBN with tuned spectral clustering loses because its six hyperparameters overfit the known classes.",
            _tuned_clustering_overfits,
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
            partial(_always_ahead, _NOVEL_ONLY, _BOTH_ON_ALL, 0),
            _CONVERGENCE,
            as_is,
        ),
        Claim(
            "convergence-known-worse-like-for-like",
            "Appendix G",
            "Updating the known centroids as well is always worse than updating the novel ones only, both on all rows.",
            partial(_always_ahead, _NOVEL_ON_ALL, _BOTH_ON_ALL, 0),
            _CONVERGENCE,
            as_is,
        ),
    ]
    arithmetic = [
        (
            "printed-averages",
            "Sections 7.2.1 and 7.2.2, Appendices B and E",
            "Every printed average is the mean of its column.",
            _printed_averages,
            n,
        ),
        (
            "printed-leads",
            "Sections 7.2.1 and 7.2.2, Appendices B and E",
            "The leads of PBN and of its variants given in the text follow from the tables.",
            _printed_leads,
            n,
        ),
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
            "On Pendigits TabularNCD has one result in Tables 4 and 5: its published values are those of known k.",
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
        (
            "tangled-penalised",
            "Section 4",
            "The score on hidden classes penalises hidden classes that are tangled with novel ones, since both are "
            "clustered together.",
            _tangled_is_penalised,
            "kfold",
        ),
        (
            "about-half-novel",
            "Section 7.1",
            "About half of the classes are novel.",
            partial(_about_half, "novel classes of all", _share_novel),
            "kfold_splits",
        ),
        (
            "about-half-hidden",
            "Section 4",
            "In each fold about half of the known classes are hidden.",
            partial(_about_half, "hidden classes of the known", _share_hidden),
            "kfold_splits",
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
    """The paper's own figures; its standard errors from its standard deviations over ten runs.

    Examples
    --------
    >>> from ncdlib.evidence.claims import paper_view
    >>> round(paper_view().mean("ncd", "PBN", "pendigits").value, 1)
    82.8
    """
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
    """Our figures in each way, by name.

    Examples
    --------
    >>> from ncdlib.evidence.claims import our_views
    >>> list(our_views())
    ['published', 'searched', 'mended']
    """
    runs = load_results(folder)
    return {name: _our_view(name, runs, folder) for name in ALL_VIEWS}


def judge(claim: Claim, view: View) -> tuple[Finding | None, str]:
    """The answer to a claim in one view, or None and what is missing.

    Examples
    --------
    >>> from ncdlib.evidence.claims import CLAIMS, judge, paper_view
    >>> finding, missing = judge(CLAIMS[0], paper_view())
    >>> finding.outcome in ("holds", "holds in part", "does not hold") and missing == ""
    True
    """
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
        without_variants (the verdict from the data sets that are the originals, where they are enough for it);
        missing; caveat; cells (the (table, method) that it rests on, as stored).

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
        outcomes_without.append(finding.outcome if finding else UNKNOWN)
    variants = [PAPER_NAME_OF[d] for d in VARIANTS if d in datasets]
    if [name for name in claim.views if row[f"{name}_verdict"]] == ["mended"]:
        # The paper says nothing of the mended method: it can qualify a verdict, not make one.
        outcomes = outcomes_without = []
    row["verdict"], row["without_variants"] = combine(outcomes), combine(outcomes_without)
    paper_without, _ = judge(claim, without["paper"])
    # What every view can answer, and the paper's own tables answer as before, can be laid to the variants.
    if UNKNOWN in outcomes_without or (paper_without.outcome if paper_without else "") != row["paper_verdict"]:
        row["without_variants"] = UNKNOWN
    row["missing"] = "; ".join(missing)
    if variants and any(row[name] for name in claim.views):
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
