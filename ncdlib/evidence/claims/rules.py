"""Kinds of claims. Each rule takes what the claim is about, and gives the function that judges a view by it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial, wraps

import numpy as np

import ncdlib
from ncdlib.evidence.claims.claim import FAILS, HOLDS, IN_PART, Finding, Judge, NotMeasured
from ncdlib.evidence.claims.view import Mean, View, mean_of, paper_view
from ncdlib.evidence.paper import DATASETS, PAPER_NAME_OF, TABLES

Cell = tuple[str, str]  # a table and a method in it
NCD_METHODS = ("Baseline", "NCD SC", "TabularNCD", "PBN")


def rule(judge_with: Callable[..., Finding]) -> Callable[..., Judge]:
    """Make a function of some arguments and a view into one of the arguments, which gives a function of the view."""

    @wraps(judge_with)
    def with_arguments(*arguments) -> Judge:
        return partial(judge_with, *arguments)

    return with_arguments


def names_of(datasets: Iterable[str]) -> str:
    """List data sets by the paper's names."""
    return ", ".join(PAPER_NAME_OF[d] for d in datasets) or "none"


def over(datasets: Sequence[str]) -> str:
    """Say how many data sets there are, and which, if it is not all seven."""
    return f"{len(datasets)} data sets" + ("" if len(datasets) == len(DATASETS) else f" ({names_of(datasets)})")


def by_count(n_missed: int) -> str:
    """Judge a count: right, missed by one, or by more."""
    return HOLDS if n_missed <= 0 else IN_PART if n_missed == 1 else FAILS


def by_sign(mean: Mean) -> str:
    """Judge a lead: settled ahead, even, or settled behind."""
    return (FAILS, IN_PART, HOLDS)[mean.sign + 1]


@rule
def leads_by(cell: Cell, rival: Cell, points: float, view: View) -> Finding:
    """Ask whether `cell` is `points` ahead of `rival` on average."""
    lead, compared_with, text = mean_lead(cell, rival, points, view)
    near = abs(lead.value - compared_with) <= view.tolerance
    if lead.sign == 0:
        paper = paper_view()
        even_there = mean_of(paper.lead(cell, rival, d) for d in DATASETS).sign == 0
        outcome = (HOLDS if even_there else IN_PART) if near else FAILS
    else:
        outcome = FAILS if lead.sign != np.sign(points) else HOLDS if near else IN_PART
    return Finding(outcome, text, lead.short)


def mean_lead(cell: Cell, rival: Cell, points: float, view: View) -> tuple[Mean, float, str]:
    """Return our mean lead, the points to compare it with (the paper's over the same data sets), and a text."""
    names = view.measured([cell, rival])
    lead = mean_of(view.lead(cell, rival, d) for d in names)
    text = f"{view.method(cell[1])} against {view.method(rival[1])}: {lead} points over {over(names)}"
    if len(names) < len(DATASETS):
        paper = paper_view()
        points = mean_of(paper.lead(cell, rival, d) for d in names).value
        text += f"; the paper there: {points:+.1f}"
    return lead, points, text


@rule
def leads_only_by(cell: Cell, rival: Cell, points: float, view: View) -> Finding:
    """Ask whether `cell` is ahead of `rival` by `points` only; a rival that is ahead itself is half of the claim."""
    lead, points, text = mean_lead(cell, rival, points, view)
    close = lead.sign >= 0 and abs(lead.value - points) <= view.tolerance
    return Finding(HOLDS if close else IN_PART if lead.value < points else FAILS, text, lead.short)


@rule
def averages(table: str, method: str, value: float, view: View) -> Finding:
    """Ask whether the average over the data sets is `value`."""
    names = view.measured([(table, method)])
    ours = view.average(table, method, names).value
    text = f"{view.method(method)}: {ours:.1f} over {over(names)}"
    if len(names) < len(DATASETS):
        value = paper_view().average(table, method, names).value
        text += f"; the paper there: {value:.1f}"
    return Finding(HOLDS if abs(ours - value) <= view.tolerance else FAILS, text, f"{ours:.1f} %")


@rule
def has_best_average(table: str, method: str, rivals: Collection[str], view: View) -> Finding:
    """Ask whether `method` has the highest average."""
    rivals = [m for m in rivals if m != method]
    names = view.measured((table, m) for m in (method, *rivals))
    best_rival = max(rivals, key=lambda m: view.average(table, m, names).value)
    lead = mean_of(view.lead((table, method), (table, best_rival), d) for d in names)
    ours, next_best = (view.average(table, m, names).value for m in (method, best_rival))
    return Finding(
        by_sign(lead),
        f"{TABLES[table].metric}: {view.method(method)} {ours:.1f}, next best {view.method(best_rival)} "
        f"{next_best:.1f}, difference {lead} over {over(names)}",
        f"{ours:.1f} against {next_best:.1f}",
    )


@rule
def is_worse_on(cell: Cell, rivals: Collection[Cell], allowed: Collection[Cell] | int, view: View) -> Finding:
    """Ask whether `cell` is behind a rival on no more data sets than allowed, or only in these (dataset, rival)."""
    names = view.measured([cell, *rivals])
    behind = {(d, rival) for d in names for rival in rivals if view.lead(cell, rival, d).sign < 0}
    worse = [d for d in names if any(d == name for name, _ in behind)]
    if isinstance(allowed, int):
        missed = len(worse) - allowed
    else:
        missed = len({d for d, rival in behind if (d, rival[1]) not in allowed})
    if by_count(missed) != by_count(missed + len(view.datasets) - len(names)):  # what is not measured may be worse
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
        by_count(missed),
        f"{view.method(cell[1])} worse on {', '.join(shown) or 'none'} of {over(names)}; even in {even} comparisons",
        f"worse on {len(worse)} of {len(names)}",
    )


@rule
def wins(table: str, method: str, rivals: Collection[str], at_least: int, view: View) -> Finding:
    """Ask whether `method` has the highest mean on at least this many data sets."""
    rivals = [m for m in rivals if m != method]
    names = view.measured((table, m) for m in (method, *rivals))
    worst = {d: min((view.lead((table, method), (table, m), d) for m in rivals), key=lambda x: x.value) for d in names}
    won = [d for d, lead in worst.items() if lead.value >= 0]
    even = [
        d for d in names if d not in won and all(view.lead((table, method), (table, m), d).sign >= 0 for m in rivals)
    ]

    def outcome(n_more: int) -> str:
        n_missed = at_least - len(won) - n_more
        return IN_PART if 0 < n_missed <= len(even) else by_count(n_missed)

    if outcome(0) != outcome(len(view.datasets) - len(names)):  # what is not measured may be won
        raise NotMeasured(
            f"{view.method(method)} is the best on {len(won)} of {len(names)} data sets; the others decide"
        )
    text = f"{view.method(method)} is the best on {len(won)} of {over(names)}: {names_of(won)}"
    text += f"; even with the best on {names_of(even)}" if even else ""
    return Finding(outcome(0), text, f"best on {len(won)} of {len(names)}")


@rule
def is_always_ahead(cell: Cell, rival: Cell, exceptions: int, view: View) -> Finding:
    """Ask whether `cell` is ahead of `rival`, settled, on every data set except for this many."""
    names = view.measured([cell, rival], at_least=len(view.datasets))
    leads = {d: view.lead(cell, rival, d) for d in names}
    ahead = [d for d, lead in leads.items() if lead.sign > 0]
    others = ", ".join(f"{PAPER_NAME_OF[d]} ({lead})" for d, lead in leads.items() if d not in ahead)
    text = f"{view.method(cell[1])} ahead of {view.method(rival[1])} on {len(ahead)} of {over(names)}; not on: "
    outcome = by_count(len(names) - len(ahead) - exceptions)
    return Finding(outcome, text + (others or "none"), f"ahead on {len(ahead)} of {len(names)}")


@rule
def beats(cell: Cell, rival: Cell, dataset: str, view: View) -> Finding:
    """Ask whether `cell` is settled ahead of `rival` on one data set."""
    lead = view.lead(cell, rival, dataset)
    names = f"{view.method(cell[1])} {view.mean(*cell, dataset).value:.1f}, "
    names += f"{view.method(rival[1])} {view.mean(*rival, dataset).value:.1f}"
    return Finding(by_sign(lead), f"{PAPER_NAME_OF[dataset]}: {names}, difference {lead}", lead.short)


def all_of(*judges: Judge) -> Judge:
    """Join several parts: all hold, none holds, or some do."""

    def judge(view: View) -> Finding:
        findings = [part(view) for part in judges]
        outcomes = {f.outcome for f in findings}
        outcome = outcomes.pop() if len(outcomes) == 1 else IN_PART
        return Finding(outcome, "; ".join(f.text for f in findings), "; ".join(f.short for f in findings))

    return judge


def error_of_k(view: View, table: str, method: str, dataset: str) -> float:
    """Return the estimated minus the true number of novel classes."""
    return view.mean(table, method, dataset, "estimated k").value - len(ncdlib.DATASETS[dataset].novel_classes)


def far_estimates(view: View, table: str, method: str, datasets: Iterable[str]) -> tuple[list[str], str, float]:
    """Return the data sets whose estimated number (median of the runs) is off by more than one class, in words as well.

    The last is the mean error.
    """
    errors = {d: error_of_k(view, table, method, d) for d in datasets}
    far = [d for d, e in errors.items() if abs(e) > 1]
    shown = ", ".join(f"{PAPER_NAME_OF[d]} ({errors[d]:+g})" for d in far) or "none"
    mean_error = float(np.mean(np.abs(list(errors.values()))))
    return far, f"mean error {mean_error:.1f}, off by more than one on {shown}", mean_error
