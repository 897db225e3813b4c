"""Table 3: clustering algorithms, the number of classes known."""

from __future__ import annotations

from ncdlib.evidence.claims.claim import BOTH, FAILS, HOLDS, IN_PART, PUBLISHED, ClaimList, Finding
from ncdlib.evidence.claims.rules import (
    all_of,
    averages,
    has_best_average,
    is_always_ahead,
    is_worse_on,
    leads_by,
    over,
    wins,
)
from ncdlib.evidence.claims.view import View, mean_of
from ncdlib.evidence.paper import PAPER_NAME_OF

K_MEANS, NCD_K_MEANS, SC, NCD_SC = (("clust", method) for method in ("k-means", "NCD k-means", "SC", "NCD SC"))
CLUSTERINGS = ("k-means", "NCD k-means", "SC", "NCD SC")
NCD_K_MEANS_ALGORITHM, NCD_SC_ALGORITHM = "Algorithm 2", "Algorithm 3"
CHOSEN_ALIKE = "k-means: chosen by unsquared distance"

claims = ClaimList("clust", "Section 7.2.1")


claims.add(
    "ncd-kmeans-never-worse",
    "NCD k-means is never worse than k-means.",
    is_worse_on(NCD_K_MEANS, [K_MEANS], 0),
    views=PUBLISHED,
    about=NCD_K_MEANS_ALGORITHM,
)

claims.add(
    "ncd-sc-once-worse",
    "NCD SC is worse than SC on one data set only.",
    is_worse_on(NCD_SC, [SC], 1),
    about=NCD_SC_ALGORITHM,
)

claims.add(
    "clustering-gains-from-known",
    "NCD k-means is ahead of k-means on average, by 2.6 points.",
    leads_by(NCD_K_MEANS, K_MEANS, 2.6),
    views=PUBLISHED,
    about=NCD_K_MEANS_ALGORITHM,
)


@claims.add(
    "known-classes-make-the-gain",
    "The lead of NCD k-means shows that simple clustering can benefit from the known classes.",
    views=PUBLISHED,
    about=NCD_K_MEANS_ALGORITHM,
)
def _known_classes_make_the_gain(view: View) -> Finding:
    """Compare with a k-means that chooses among its starts as NCD k-means does: half of the lead must stay.

    If the two are even, nothing is left that the known classes could have done: the claim fails.
    """
    ours, plain, alike = NCD_K_MEANS, K_MEANS, ("choices", CHOSEN_ALIKE)
    names = view.measured([ours, plain, alike])
    gain, rest = (mean_of(view.lead(ours, rival, d) for d in names) for rival in (plain, alike))
    outcome = FAILS if rest.sign <= 0 else HOLDS if rest.value >= gain.value / 2 else IN_PART
    return Finding(
        outcome,
        f"NCD k-means against k-means: {gain} points; against k-means that chooses the best of its starts by the same "
        f"rule: {rest} points, over {over(names)}",
        f"{gain.short}; chosen alike {rest.short}",
    )


claims.add(
    "ncd-sc-gains-from-known",
    "NCD SC is ahead of SC on average, by 5.3 points.",
    leads_by(NCD_SC, SC, 5.3),
    about=NCD_SC_ALGORITHM,
)

claims.add(
    "clustering-reliably-better",
    "Unsupervised clustering algorithms reliably improve by simple changes that use the known classes.",
    all_of(is_always_ahead(NCD_K_MEANS, K_MEANS, 1), is_always_ahead(NCD_SC, SC, 1)),
    place="Section 8",
    views=BOTH,
    about=f"{NCD_K_MEANS_ALGORITHM}, {NCD_SC_ALGORITHM}",
)


@claims.add(
    "no-universal-clustering",
    "Of NCD k-means and NCD SC, neither is the better one on all data sets.",
    about=f"{NCD_K_MEANS_ALGORITHM}, {NCD_SC_ALGORITHM}",
)
def _no_universal_winner(view: View) -> Finding:
    """Ask whether NCD k-means is settled ahead of NCD SC on some data sets, and behind it on others."""
    names = view.measured(("clust", m) for m in ("NCD k-means", "NCD SC"))
    leads = {d: view.lead(NCD_K_MEANS, NCD_SC, d) for d in names}
    directions = {lead.sign for lead in leads.values()} - {0}
    text = ", ".join(f"{PAPER_NAME_OF[d]} {lead}" for d, lead in leads.items())
    signs = [lead.sign for lead in leads.values()]
    return Finding(
        HOLDS if len(directions) == 2 else FAILS,
        f"NCD k-means against NCD SC: {text}",
        f"ahead on {signs.count(1)}, behind on {signs.count(-1)}",
    )


claims.add(
    "ncd-sc-wins-four",
    "NCD SC is ahead of the three other clusterings on four data sets.",
    wins("clust", "NCD SC", CLUSTERINGS, 4),
    about=NCD_SC_ALGORITHM,
)

claims.add(
    "ncd-sc-best-average",
    "NCD SC has the highest average of the four clusterings.",
    has_best_average("clust", "NCD SC", CLUSTERINGS),
    about=NCD_SC_ALGORITHM,
)

claims.add(
    "ncd-sc-average",
    "NCD SC reaches 76.3 % on average.",
    averages("clust", "NCD SC", 76.3),
    about=NCD_SC_ALGORITHM,
)
