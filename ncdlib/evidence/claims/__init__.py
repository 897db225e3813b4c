"""The paper's claims, each beside the function that answers it from the measurements, and the verdict that follows.

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

What else a claim needs (half of a gain, a rank, a share of a curve) stands in its function.

Every claim is judged up to three times: with the authors' published hyperparameters ("published"), with those of our
own hidden-class search ("searched"), and, where TabularNCD is concerned, with its ``top_k`` taken as the fraction that
the text describes and tuned by a search of its own ("mended"). The verdict is what these agree on; "holds in part"
where they do not. Claims that can be checked inside the paper are answered from its own tables, exactly.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

import pandas as pd

from ncdlib.evidence.claims import (
    centroids,
    clustering,
    counting,
    estimated_k,
    hidden,
    inside_paper,
    known_k,
    more_novel,
    pbn_spectral,
)
from ncdlib.evidence.claims.claim import (
    ALL_VIEWS,
    FAILS,
    HOLDS,
    IN_PART,
    INSIDE_PAPER,
    UNKNOWN,
    VERDICTS,
    Claim,
    Finding,
    NotMeasured,
    combine,
)
from ncdlib.evidence.claims.view import Mean, View, our_views, paper_view
from ncdlib.evidence.compare import measured_as
from ncdlib.evidence.paper import CORRELATION, DATASETS, PAPER_NAME_OF, where

__all__ = [
    "ALL_VIEWS",
    "CLAIMS",
    "FAILS",
    "HOLDS",
    "IN_PART",
    "UNKNOWN",
    "VERDICTS",
    "Claim",
    "Finding",
    "Mean",
    "NotMeasured",
    "View",
    "combine",
    "judge",
    "ledger",
    "our_views",
    "paper_view",
]

CLAIMS = [
    *clustering.claims,
    *known_k.claims,
    *hidden.claims,
    *estimated_k.claims,
    *counting.claims,
    *more_novel.claims,
    *pbn_spectral.claims,
    *centroids.claims,
    *inside_paper.claims,
]
"""Every claim, in the order of the paper's tables; the arithmetic inside the paper last."""

VARIANTS = ("human", "census")
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
    "about",
    *(f"{name}_short" for name in ("paper", *ALL_VIEWS)),
]


def judge(claim: Claim, view: View) -> tuple[Finding | None, str]:
    """Return the answer to a claim in one view, or None and what is missing.

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


def ledger(folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Judge every claim from the measurements in a folder (by default ``results/``).

    Returns
    -------
    DataFrame
        One row per claim: id; place in the paper; chapter of the book, by topic; claim; paper (the same question asked
        of the paper's own tables) and paper_verdict; published, searched, mended (our answers) and their verdicts;
        verdict; without_variants (the verdict from the data sets that are the originals, where they are enough for
        it); missing; caveat; cells (the (table, method) that it rests on, as stored); about (what else it may be
        looked for by); paper_short, published_short, searched_short, mended_short (each answer in a word or two).

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
    views["paper"].folder = folder
    originals = tuple(d for d in DATASETS if d not in VARIANTS)
    without = {name: replace(view, datasets=originals, used={}, missing={}) for name, view in views.items()}
    return pd.DataFrame([_row(claim, views, without) for claim in CLAIMS], columns=COLUMNS)


@dataclass
class _Answers:
    """What our views answer to a claim, gathered."""

    findings: dict[str, Finding] = field(default_factory=dict)
    without_variants: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    cells: dict[tuple[str, str], None] = field(default_factory=dict)  # in order
    datasets: set[str] = field(default_factory=set)


def _row(claim: Claim, views: dict[str, View], without: dict[str, View]) -> dict:
    row = dict.fromkeys(COLUMNS, "")
    row |= {"id": claim.id, "place": claim.full_place, "chapter": claim.chapter, "claim": claim.says}
    row["about"] = claim.about
    finding, _ = judge(claim, views["paper"])
    row["paper_verdict"], row["paper"], row["paper_short"] = finding or ("", "no numbers in the paper", "")
    if claim.views == INSIDE_PAPER:
        return row | dict.fromkeys(("verdict", "without_variants"), row["paper_verdict"])
    # Claims that the paper's tables cannot answer say by their views whether they concern TabularNCD.
    about_tabularncd = claim.table == CORRELATION or "TabularNCD" in {method for _, method, _ in views["paper"].used}
    names = [name for name in claim.views if name != "mended" or about_tabularncd]
    answers = _ask(claim, {name: views[name] for name in names}, without)
    for name, found in answers.findings.items():
        row |= {name: found.text, f"{name}_verdict": found.outcome, f"{name}_short": found.short}
    # The paper says nothing of the mended method: it can qualify a verdict, not make one.
    counts = list(answers.findings) != ["mended"]
    row["verdict"] = combine([finding.outcome for finding in answers.findings.values() if counts])
    row["without_variants"] = combine(answers.without_variants if counts else [])
    paper_without, _ = judge(claim, without["paper"])
    # What every view can answer, and the paper's own tables answer as before, can be laid to the variants.
    if UNKNOWN in answers.without_variants or (paper_without or ("",))[0] != row["paper_verdict"]:
        row["without_variants"] = UNKNOWN
    variants = [PAPER_NAME_OF[d] for d in VARIANTS if d in answers.datasets]
    if variants and answers.findings:
        row["caveat"] = f"{' and '.join(variants)}: measured on a variant of the data"
    row["missing"] = "; ".join(answers.missing)
    row["cells"] = "; ".join(f"{table} / {method}" for table, method in answers.cells)
    return row


def _ask(claim: Claim, views: dict[str, View], without: dict[str, View]) -> _Answers:
    answers = _Answers()
    for name, view in views.items():
        finding, reason = judge(claim, view)
        answers.cells |= {measured_as(table, method): None for table, method, _ in view.used}
        answers.datasets |= {d for _, _, d in set(view.used) - set(view.missing)}
        if finding is None:
            answers.missing.append(f"{name}: {reason}")
            continue
        answers.findings[name] = finding
        if view.missing:
            answers.missing.append(f"{name}: {_summary_of_missing(view)}")
        finding, _ = judge(claim, without[name])
        answers.without_variants.append(finding.outcome if finding else UNKNOWN)
    return answers


def _summary_of_missing(view: View) -> str:
    by_method: dict[str, list[str]] = {}
    for table, method, dataset in view.missing:
        by_method.setdefault(f"{method} ({where(table)})", []).append(PAPER_NAME_OF[dataset])
    return "; ".join(f"{method} on {', '.join(names)}" for method, names in by_method.items())
