"""The evidence on a page: tables, figures, and the ledger of claims."""

from ncdlib.evidence.show.ledger import claims_html, count_of_verdicts, verdicts
from ncdlib.evidence.show.sentences import glue_all, lower_by, range_in_words, starred_names, variant_sources
from ncdlib.evidence.show.tables import (
    COLORS,
    narrow,
    plot_against_paper,
    render_table,
    rerun,
    runs_in_words,
    share_within,
)

__all__ = [
    "COLORS",
    "claims_html",
    "count_of_verdicts",
    "glue_all",
    "lower_by",
    "narrow",
    "plot_against_paper",
    "range_in_words",
    "render_table",
    "rerun",
    "runs_in_words",
    "share_within",
    "starred_names",
    "variant_sources",
    "verdicts",
]
