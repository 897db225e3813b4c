"""The evidence on a page: tables, figures, and the ledger of claims."""

from ncdlib.evidence.show.ledger import claims_html, count_of_verdicts, verdicts
from ncdlib.evidence.show.sentences import glue_all, starred_names
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
    "narrow",
    "plot_against_paper",
    "render_table",
    "rerun",
    "runs_in_words",
    "share_within",
    "starred_names",
    "verdicts",
]
