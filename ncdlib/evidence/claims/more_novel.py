"""Figure 7: more and more classes of Letter are novel."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from scipy import stats

from ncdlib.evidence.claims.claim import FAILS, HOLDS, IN_PART, PUBLISHED, ClaimList, Finding, NotMeasured
from ncdlib.evidence.claims.rules import by_sign
from ncdlib.evidence.claims.view import MIN_RUNS, Mean, View, mean_of

PLAIN = ("NCD k-means", "NCD SC")
DEEP = ("PBN", "TabularNCD", "Baseline")
SHARE_METHODS = (*PLAIN, *DEEP)

claims = ClaimList("perf_wrt_share", "Appendix C", PUBLISHED)


def _share_runs(view: View, method: str) -> pd.Series:
    """Return ACC in percent by the number of novel letters, from 2 (one is always found), and their combination."""
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
    """Return the mean ACC by the number of novel classes."""
    return _share_runs(view, method).groupby("novel").mean()


def _curves(view: View, methods: Iterable[str]) -> pd.DataFrame:
    """Return the curves of several methods, at the numbers of novel classes that all of them have."""
    return pd.DataFrame({m: _curve(view, m) for m in methods}).dropna()


@claims.add("share-decreasing", "The accuracy of the methods falls almost always as more classes are novel.")
def _decreasing(view: View) -> Finding:
    curves = _curves(view, SHARE_METHODS)
    rho = {method: float(stats.spearmanr(curve.index, curve)[0]) for method, curve in curves.items()}
    falling = [m for m, r in rho.items() if r <= -0.9]
    outcome = HOLDS if len(falling) == len(rho) else FAILS if len(falling) <= 2 else IN_PART
    text = ", ".join(f"{m} {r:.2f}" for m, r in rho.items())
    weakest = max(rho.values())
    return Finding(outcome, f"rank correlation of ACC with the number: {text}", f"{weakest:.2f} or stronger")


def _late_falls(view: View, methods: Iterable[str]) -> tuple[pd.Series, str]:
    """Return what each method loses from the middle of the curve to its end, as a share of the middle, and a text."""
    curves = _curves(view, methods)
    middle, end = curves.index[len(curves) // 2], curves.index[-1]
    falls = 1 - curves.loc[end] / curves.loc[middle]
    shares = ", ".join(f"{m} {f:.0%}" for m, f in falls.items())
    return falls, f"share of the ACC at {middle} novel classes that is lost at {end}: {shares}"


@claims.add(
    "share-deep-fall-faster", "When many classes are novel, the deep methods fall faster than NCD k-means and NCD SC."
)
def _deep_fall_faster(view: View) -> Finding:
    falls, text = _late_falls(view, SHARE_METHODS)
    pairs = [falls[deep] > falls[other] for deep in DEEP for other in PLAIN]
    outcome = HOLDS if all(pairs) else FAILS if not any(pairs) else IN_PART
    return Finding(outcome, text, f"faster in {sum(pairs)} of {len(pairs)} pairs")


@claims.add("share-baseline-falls-most", "Of the deep methods, the baseline falls most.")
def _baseline_falls_most(view: View) -> Finding:
    falls, text = _late_falls(view, DEEP)
    return Finding(HOLDS if falls.idxmax() == "Baseline" else FAILS, text, f"most: {falls.idxmax()}, {falls.max():.0%}")


@claims.add("share-tabularncd-peak", "TabularNCD peaks around 7 novel classes, for which it was tuned.")
def _tabularncd_peaks(view: View) -> Finding:
    curve, noise = _curve(view, "TabularNCD"), _share_runs(view, "TabularNCD").groupby("novel").sem()
    peak = int(curve.idxmax())
    bumps = curve.index[(curve > curve.shift()) & (curve > curve.shift(-1))]  # higher than both neighbours
    around_seven = [n for n in bumps if 5 <= n <= 9]
    outcome = HOLDS if peak in around_seven else IN_PART if around_seven else FAILS
    local = ", ".join(f"{curve[n]:.1f} ± {noise[n]:.1f} at {n}" for n in bumps) or "none"
    return Finding(
        outcome, f"highest ACC {curve.max():.1f} at {peak} novel classes; local peaks: {local}", f"highest at {peak}"
    )


def _share_lead(view: View, method: str, rival: str, at_least: int = 2) -> Mean:
    """Return the mean lead over all numbers of novel classes from `at_least` on, paired by combination of classes."""
    leads = (_share_runs(view, method) - _share_runs(view, rival)).dropna()
    by_number = leads[leads.index.get_level_values("novel") >= at_least].groupby("novel")
    return mean_of(Mean(lead, se) for lead, se in zip(by_number.mean(), by_number.sem(), strict=True))


@claims.add("share-pbn-robust", "PBN outperforms the others over a wide range.", place="Section 7.2.1 and Appendix C")
def _pbn_best_over_a_wide_range(view: View) -> Finding:
    """Ask for the highest mean at more than half of the numbers, and a settled lead over each rival in all."""
    curves = _curves(view, SHARE_METHODS)
    won = list(curves.index[curves.idxmax(axis=1) == "PBN"])
    leads = {m: _share_lead(view, "PBN", m) for m in SHARE_METHODS if m != "PBN"}
    parts = [len(won) > len(curves) / 2, all(lead.sign > 0 for lead in leads.values())]
    where = f" ({', '.join(map(str, won))} novel classes)" if won else ""
    shown = ", ".join(f"{m} {lead}" for m, lead in leads.items())
    return Finding(
        (FAILS, IN_PART, HOLDS)[sum(parts)],
        f"PBN has the highest mean at {len(won)} of {len(curves)} numbers{where}; over all of them, against {shown}",
        f"best at {len(won)} of {len(curves)}",
    )


@claims.add("share-deep-fail", "Deep methods tend to fail when too few classes are known.", place="Section 7.2.1")
def _deep_fail_with_few_known(view: View) -> Finding:
    """Ask whether, at the largest number of novel classes, every deep method is behind NCD k-means and NCD SC."""
    last = int(_curves(view, SHARE_METHODS).index.max())
    leads = {(m, r): _share_lead(view, m, r, last) for m in DEEP for r in PLAIN}
    behind = [lead.sign < 0 for lead in leads.values()]
    text = "; ".join(f"{method} against {rival} {lead}" for (method, rival), lead in leads.items())
    return Finding(
        HOLDS if all(behind) else IN_PART if any(behind) else FAILS,
        f"at {last} novel classes of 26: {text}",
        f"behind in {sum(behind)} of {len(behind)} pairs",
    )


@claims.add("share-pbn-few-known", "PBN still extracts relevant information when few classes are known.")
def _pbn_learns_from_few_known(view: View) -> Finding:
    """Ask whether, with five known classes or fewer, k-means in PBN's space is ahead of NCD k-means in the features."""
    lead = _share_lead(view, "PBN", "NCD k-means", at_least=26 - 5)
    return Finding(by_sign(lead), f"five known letters or fewer: PBN {lead} points ahead", lead.short)
