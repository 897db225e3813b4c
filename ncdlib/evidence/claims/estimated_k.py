"""Tables 5, 6 and 7: novel class discovery, the number of classes estimated."""

from __future__ import annotations

import ncdlib
from ncdlib.evidence.claims.claim import BOTH, FAILS, HOLDS, IN_PART, PUBLISHED, ClaimList, Finding, NotMeasured
from ncdlib.evidence.claims.rules import (
    NCD_METHODS,
    all_of,
    averages,
    beats,
    by_count,
    by_sign,
    far_estimates,
    has_best_average,
    leads_by,
    mean_lead,
    names_of,
    over,
    rule,
    wins,
)
from ncdlib.evidence.claims.view import Mean, View, mean_of
from ncdlib.evidence.paper import FEATURES_METHOD, PAPER_NAME_OF

WITHOUT_RECONSTRUCTION = "PBN: without the reconstruction"

claims = ClaimList("ncd_k_est", "Section 7.2.2")


claims.add(
    "pbn-over-baseline-estimated",
    "With k estimated, PBN is 17.6 points ahead of Baseline on average.",
    leads_by(("ncd_k_est", "PBN"), ("ncd_k_est", "Baseline"), 17.6),
)

claims.add(
    "pbn-over-ncd-sc-estimated",
    "With k estimated, PBN is 18.8 points ahead of NCD SC on average.",
    leads_by(("ncd_k_est", "PBN"), ("ncd_k_est", "NCD SC"), 18.8),
)

claims.add(
    "pbn-over-tabularncd-estimated",
    "With k estimated, PBN is 16.3 points ahead of TabularNCD on average.",
    leads_by(("ncd_k_est", "PBN"), ("ncd_k_est", "TabularNCD"), 16.3),
)

claims.add(
    "pbn-best-average-estimated",
    "With k estimated, PBN has the highest average.",
    has_best_average("ncd_k_est", "PBN", NCD_METHODS),
)

claims.add(
    "pbn-wins-four-estimated",
    "With k estimated, PBN is the best (or shares the first place) on four data sets.",
    wins("ncd_k_est", "PBN", NCD_METHODS, 4),
)


@claims.add("greatest-lead-estimated", "PBN's leads are greatest with k estimated.")
def _greatest_lead_when_estimated(view: View) -> Finding:
    """Compare PBN's leads over the three others with k estimated and with k known."""
    texts, grown = [], []
    for rival in ("Baseline", "NCD SC", "TabularNCD"):
        names = view.measured([(t, m) for t in ("ncd", "ncd_k_est") for m in ("PBN", rival)])
        known = mean_of(view.lead(("ncd", "PBN"), ("ncd", rival), d) for d in names)
        estimated = mean_of(view.lead(("ncd_k_est", "PBN"), ("ncd_k_est", rival), d) for d in names)
        grown.append(estimated.minus(known).sign > 0)
        texts.append(f"over {view.method(rival)} {known.value:+.1f} known, {estimated.value:+.1f} estimated")
    outcome = by_count(3 - sum(grown)) if any(grown) else FAILS
    return Finding(outcome, "; ".join(texts), f"greater over {sum(grown)} of 3")


claims.add(
    "tabularncd-wins-optdigits",
    "With k estimated, TabularNCD beats PBN on Optdigits.",
    beats(("ncd_k_est", "TabularNCD"), ("ncd_k_est", "PBN"), "optdigits"),
)


def _n_outputs(view: View, dataset: str) -> float:
    """Return how many clusters TabularNCD was trained for; the paper prints what the features' silhouette says."""
    if view.name == "paper":
        return view.mean("silhouette_results", FEATURES_METHOD, dataset).value
    return view.mean("ncd_k_est", "TabularNCD", dataset, "estimated k").value


def _overestimated(view: View, dataset: str) -> tuple[Mean, str]:
    """Return what the ACC of TabularNCD changes by when it is given too many clusters, and a text."""
    k, k_true = _n_outputs(view, dataset), len(ncdlib.DATASETS[dataset].novel_classes)
    change = view.lead(("ncd_k_est", "TabularNCD"), ("ncd", "TabularNCD"), dataset)
    if k <= k_true:
        raise NotMeasured(f"an estimate that is too large; for {PAPER_NAME_OF[dataset]} it is {k:.0f} here")
    return change, (
        f"{PAPER_NAME_OF[dataset]}: {k:.0f} classes by the features' silhouette, {k_true} in truth; "
        f"{view.method('TabularNCD')} {change} points, each setting with hyperparameters of its own"
    )


@claims.add(
    "unused-neurons-optdigits",
    "On Optdigits, where k is too large, TabularNCD does well: it probably leaves superfluous outputs unused.",
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
    return Finding(
        outcome, f"{text}; at most {wrong:.1f} % of the rows are in superfluous clusters", f"at most {wrong:.1f} %"
    )


@claims.add("overestimate-hurts-letter", "With k estimated far too large, on Letter, TabularNCD falls.")
def _loss_by_overestimate(view: View) -> Finding:
    change, text = _overestimated(view, "letter")
    return Finding((HOLDS, IN_PART, FAILS)[change.sign + 1], text, change.short)


@rule
def _change_when_estimated(method: str, points: float, view: View) -> Finding:
    """Ask whether the average of `method` changes by `points` when k is estimated."""
    found = leads_by(("ncd_k_est", method), ("ncd", method), points)(view)
    numbers = found.text.partition(":")[2]
    return found._replace(text=f"{view.method(method)} with k estimated against k known:{numbers}")


claims.add(
    "baseline-falls",
    "The baseline loses 3.3 points on average when k is estimated (by the tables; 2.3 by the text).",
    _change_when_estimated("Baseline", -3.3),
)

claims.add(
    "ncd-sc-falls",
    "NCD SC loses 24.1 points on average when k is estimated (by the tables; 22.1 by the text).",
    _change_when_estimated("NCD SC", -24.1),
)

claims.add(
    "baseline-average-estimated",
    "With k estimated, the baseline reaches 53.4 % on average.",
    averages("ncd_k_est", "Baseline", 53.4),
    views=BOTH,
)

claims.add(
    "ncd-sc-average-estimated",
    "With k estimated, NCD SC reaches 52.2 % on average.",
    averages("ncd_k_est", "NCD SC", 52.2),
    views=BOTH,
)

claims.add(
    "tabularncd-average-estimated",
    "With k estimated, TabularNCD reaches 54.7 % on average.",
    averages("ncd_k_est", "TabularNCD", 54.7),
    views=BOTH,
)


@rule
def _stays_when_estimated(method: str, points: float, view: View) -> Finding:
    """Ask whether the average of `method` falls by no more than `points` when k is estimated."""
    fall, points, text = mean_lead(("ncd", method), ("ncd_k_est", method), points, view)
    outcome = HOLDS if fall.value <= points + view.tolerance else FAILS
    text = f"{view.method(method)} with k known against k estimated:" + text.partition(":")[2]
    return Finding(outcome, text, f"falls by {fall.value:.1f}")


claims.add(
    "pbn-stays",
    "PBN keeps 71.0 % on average when k is estimated (6.3 points less than with k known, by the tables).",
    all_of(averages("ncd_k_est", "PBN", 71.0), _stays_when_estimated("PBN", 6.3)),
)


@claims.add(
    "others-cannot-count",
    "In contrast to PBN, the baseline and NCD SC find no space in which the novel classes can be counted.",
    views=BOTH,
)
def _others_cannot_count(view: View) -> Finding:
    """By the measure of `k-estimated-well`, the classes can be counted in neither space, and less so than in PBN's.

    A space that is far off on no more data sets than PBN's is no contrast to it.
    """
    rivals = ("Baseline", "NCD SC")
    names = view.measured(("ncd_k_est", m) for m in (*rivals, "PBN"))
    found = {m: far_estimates(view, "ncd_k_est", m, names) for m in (*rivals, "PBN")}
    n_can = sum(len(found[m][0]) <= max(1, len(found["PBN"][0])) for m in rivals)
    return Finding(
        (HOLDS, IN_PART, FAILS)[n_can],
        "; ".join(f"{m}: {text}" for m, (_, text, _) in found.items()) + f"; {over(names)}",
        "mean errors " + ", ".join(f"{error:.1f}" for *_, error in found.values()),
    )


@claims.add(
    "reconstruction-helps",
    "It is the reconstruction term that gives PBN a space in which the unlabelled rows are well represented.",
    views=PUBLISHED,
)
def _reconstruction_helps(view: View) -> Finding:
    """Compare PBN with itself at w = 1, all else equal."""
    full, without = ("ncd", "PBN"), ("choices", WITHOUT_RECONSTRUCTION)
    names = view.measured([full, without])
    leads = {d: view.lead(full, without, d) for d in names}
    lead = mean_of(leads.values())
    shown = ", ".join(f"{PAPER_NAME_OF[d]} {x}" for d, x in leads.items())
    text = f"k known, PBN with the term against w = 1, all else as published: {lead}; {shown}"
    behind = [d for d, x in leads.items() if x.sign < 0]
    text += f"; settled the other way on {names_of(behind)}" if behind else ""
    return Finding(by_sign(lead), text, lead.short)


for table, metric, printed in (
    ("final_table_nmi", "NMI", (23.5, 8.6, 13.5)),
    ("final_table_ari", "ARI", (24.5, 12.4, 17.5)),
):
    for rival, points in zip(("Baseline", "NCD SC", "TabularNCD"), printed, strict=True):
        claims.add(
            f"pbn-over-{rival.lower().replace(' ', '-')}-{metric.lower()}",
            f"With k estimated, PBN's {metric} is {points} points above that of {rival} on average.",
            leads_by((table, "PBN"), (table, rival), points),
            place="Appendix B",
            table=table,
        )


claims.add(
    "all-metrics-agree",
    "PBN has the highest average NMI and the highest average ARI, as it has the highest ACC.",
    all_of(*(has_best_average(t, "PBN", NCD_METHODS) for t in ("ncd_k_est", "final_table_nmi", "final_table_ari"))),
    place="Appendix B",
    table="final_table_ari",
)
