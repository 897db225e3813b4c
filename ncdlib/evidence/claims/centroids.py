"""Table 11: which centroids NCD k-means moves until it converges."""

from __future__ import annotations

from ncdlib.evidence.claims.claim import PUBLISHED, ClaimList
from ncdlib.evidence.claims.rules import is_always_ahead, wins

TABLE = "clust_results_different_convergence"
NOVEL_ONLY = "update novel only centroids on unlabeled data"
NOVEL_ON_ALL = "update novel only centroids on labeled and unlabeled data"
BOTH_ON_ALL = "update known and novel centroids on labeled and unlabeled data"

claims = ClaimList(TABLE, "Appendix G", PUBLISHED, about="Algorithm 2")


claims.add(
    "convergence-novel-only",
    "Updating only the novel centroids on unlabelled rows is the best on five data sets.",
    wins(TABLE, NOVEL_ONLY, (NOVEL_ON_ALL, BOTH_ON_ALL), 5),
)

claims.add(
    "convergence-known-worse",
    "Updating the known centroids as well, on all rows, is always worse than updating the novel ones "
    "only, on unlabelled rows.",
    is_always_ahead((TABLE, NOVEL_ONLY), (TABLE, BOTH_ON_ALL), 0),
)

claims.add(
    "convergence-known-worse-like-for-like",
    "Updating the known centroids as well is always worse than updating the novel ones only, both on all rows.",
    is_always_ahead((TABLE, NOVEL_ON_ALL), (TABLE, BOTH_ON_ALL), 0),
)
