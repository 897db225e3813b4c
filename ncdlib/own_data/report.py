"""The HTML page of a `Discovery`: one file, no network, and nothing from the data that a browser could execute."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Container, Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ncdlib
from ncdlib._io.files import atomic_write
from ncdlib.own_data.draw import draw
from ncdlib.own_data.examples import examples
from ncdlib.own_data.rows import OUTLIER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ncdlib.own_data.explain import ClassProfile, Difference
    from ncdlib.own_data.result import Discovery

N_DIFFERENCES = 6
N_FEATURES_OF_A_ROW = 4
N_IN_DOUBT = 10  # rows that are listed
IN_DOUBT = 0.6  # a row's confidence below this

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2530; background: #fff; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; margin: .5rem 0; } th, td { padding: .25rem .75rem; border-bottom: 1px solid #d5dbe3;
  text-align: left; vertical-align: top; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
section.class { border: 1px solid #d5dbe3; border-left: 4px solid #d1495b; border-radius: 4px; padding: .25rem 1rem;
  margin: 1rem 0; }
code { background: #eef1f5; padding: .1rem .3rem; border-radius: 3px; overflow-wrap: anywhere; }
img { max-width: 100%; height: auto; } .note { color: #5c4a00; background: #fff6d9; padding: .25rem .75rem; }
.table { overflow-x: auto; }
"""


def write_report(found: Discovery, path: Path) -> Path:
    """Write the page; a report that fails leaves an old one whole."""
    with atomic_write(path) as file:
        file.write(_page(found).encode())
    return path


def _page(found: Discovery) -> str:
    n_unlabeled = int(found.unlabeled.sum())
    known = sorted({str(c) for c in found.known if c is not None})
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in found.notes)
    body = f"""
<h1>{count(found.n_clusters, "discovered class", "discovered classes")}</h1>
<p>{count(n_unlabeled, "unlabelled row", "unlabelled rows")} among {len(found.labels)}; known classes
({len(known)}): {escape(", ".join(known))}. {_known_or_new(found)}</p>
{notes}
{_edits(found)}
{_classes(found) if found.profiles else ""}
<p>Made by ncdlib {escape(ncdlib.__version__)}.</p>
"""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' "
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
        f"<title>Discovered classes</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _edits(found: Discovery) -> str:
    lines = [[entry.when, str(entry)] for entry in found.edits]
    return f"<h2>Edits</h2><div class='table'>{_table(['when', 'edit'], lines)}</div>" if lines else ""


def _known_or_new(found: Discovery) -> str:
    """Say what became of the unlabelled rows."""
    parts = [count(int(np.sum(found.labels >= 0)), "row", "rows") + " in discovered classes"]
    if n_recognised := int(found.recognised.sum()):
        parts.append(f"{n_recognised} recognised as of known classes")
    if n_outliers := int(np.sum(found.labels == OUTLIER)):
        parts.append(f"{n_outliers} of no class")
    told = found.known_or_new
    test = "" if told is None else f" Test of no new class at all: p = {told.p_value:.2g}."
    return f"Of the unlabelled rows: {', '.join(parts)}.{test}"


def _classes(found: Discovery) -> str:
    sure = "" if np.isnan(found.confidence) else f" Confidence in the whole partition: {found.confidence:.0%}."
    n_discovered = int(np.sum(found.labels >= 0))
    return f"""
<p>{escape(found.explanation)}.</p>
<p>Stability over seeds (mean adjusted Rand index): <strong>{found.stability:.2f}</strong>.{sure}</p>
<h2>The classes</h2>
<div class="table">{_overview(found)}</div>
{_rows_in_doubt(found)}
{"".join(_profile(p, n_discovered, _examples(found, p)) for p in found.profiles)}
<h2>Figures</h2>
{_figure(found)}
{_search(found)}
"""


def count(n: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{n} {one if n == 1 else many}"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]], numbers: Container[str] = ()) -> str:
    """All text is escaped; the columns of `numbers` are aligned on the right."""
    header = list(header)
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in header)
    lines = []
    for row in rows:
        cells = zip(header, row, strict=True)
        cells = (f"<td{' class=n' if name in numbers else ''}>{escape(value)}</td>" for name, value in cells)
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _overview(found: Discovery) -> str:
    return _table(
        ["class", "rows", "confidence", "stability", "nearest known class", "verdict", "rule"],
        [
            [
                p.name,
                f"{p.size:,}",
                _percent(p.confidence),
                _stability(p),
                str(p.nearest_known),
                p.verdict,
                p.rule,
            ]
            for p in found.profiles
        ],
        numbers=("rows", "confidence", "stability"),
    )


def _stability(profile: ClassProfile) -> str:
    return "not known" if math.isnan(profile.stability) else f"{profile.stability:.2f}"


def _rows_in_doubt(found: Discovery) -> str:
    """List, for each class, the rows that might as well be of another one."""
    frame = found.to_frame()
    frame = frame[frame["discovered"] & (frame["confidence"] < IN_DOUBT)]
    if frame.empty:
        return ""
    n_discovered = int(np.sum(found.labels >= 0))
    doubtful = frame.sort_values("confidence", kind="stable").head(N_IN_DOUBT)
    cells = [
        [str(row), line["label"], f"{line['confidence']:.2f}", line["runner_up"] or ""]
        for row, line in doubtful.iterrows()
    ]
    return f"""<p>{len(frame):,} of {n_discovered:,} rows are in doubt: less than {IN_DOUBT:.0%} speaks for their class.
{"These are" if len(frame) <= N_IN_DOUBT else f"The {N_IN_DOUBT} most doubtful ones are"}:</p>
<div class="table">{_table(["row", "class", "confidence", "runner-up"], cells, numbers=("confidence",))}</div>"""


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.0%}"


def _means(difference: Difference) -> tuple[str, str]:
    """Both means with two digits of the feature's standard deviation: a year is no 2.02e+03."""
    inside, outside, standardized = difference.inside, difference.outside, difference.standardized
    if standardized == 0 or inside == outside:
        return f"{inside:.3g}", f"{outside:.3g}"
    spread = abs((inside - outside) / standardized)
    digits = 1 - math.floor(math.log10(spread))
    if digits > 6:  # tiny numbers
        return f"{inside:.3g}", f"{outside:.3g}"
    mark = "," if max(abs(inside), abs(outside)) >= 10_000 else ""  # for thousands, but not in a year
    return f"{inside:{mark}.{max(digits, 0)}f}", f"{outside:{mark}.{max(digits, 0)}f}"


def _examples(found: Discovery, profile: ClassProfile) -> str:
    """Show some rows of a class in the features that set it apart."""
    features = {str(feature): i for i, feature in enumerate(found.preprocessor.features_)}
    shown = [d.feature for d in profile.differences[:N_FEATURES_OF_A_ROW]]
    values = [found.preprocessor.readable_feature(found.numbers, features[name]) for name in shown]
    lines = [
        [kind, str(found.index[row]), *(f"{column[row]:.4g}" for column in values)]
        for kind, rows in zip(("typical", "borderline"), examples(found, profile), strict=True)
        for row in rows
    ]
    return _table(["", "row", *shown], lines, numbers=shown)


def _profile(profile: ClassProfile, n_unlabeled: int, rows: str) -> str:
    differences = _table(
        ["feature", "in the class", "elsewhere", "difference in standard deviations"],
        [[d.feature, *_means(d), f"{d.standardized:+.2f}"] for d in profile.differences[:N_DIFFERENCES]],
        numbers=("in the class", "elsewhere", "difference in standard deviations"),
    )
    return f"""<section class="class"><h3>{escape(profile.name)}</h3>
<p>{count(profile.size, "row", "rows")} ({profile.share:.0%} of {n_unlabeled}), nearest to the known class
<strong>{escape(str(profile.nearest_known))}</strong> ({escape(profile.verdict)}),
found again with other seeds: {_stability(profile)}.</p>
<p>Rule: <code>{escape(profile.rule)}</code> ({profile.rule_precision:.0%} of the rows under it are of this class;
it covers {profile.rule_recall:.0%} of the class)</p>
<div class="table">{differences}</div>
<div class="table">{rows}</div></section>"""


def _figure(found: Discovery) -> str:
    import matplotlib.pyplot as plt

    figure = draw(found)
    try:
        image = _png(figure)
    finally:
        plt.close(figure)
    alt = (
        "Panels: what speaks for each number of classes, a map of the rows in two dimensions with "
        "the discovered classes named, and how far each class lies from all other rows in its telling features."
    )
    return f"<img alt='{escape(alt)}' src='data:image/png;base64,{image}'>"


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, facecolor="white")
    return base64.b64encode(buffer.getvalue()).decode()


def _search(found: Discovery) -> str:
    if found.search is None:
        return ""
    search = found.search
    values = [[name, f"{v:.4g}" if isinstance(v, float) else str(v)] for name, v in search.best_params_.items()]
    return f"""<h2>The search</h2>
<p>{count(search.n_iter, "hyperparameter set", "hyperparameter sets")} in {search.n_splits_} folds that hide known
classes. The best one tells hidden classes apart with {_score_name(search.scoring_)} = {search.best_score_:.2f}.</p>
{_table(["hyperparameter", "value"], values)}"""


def _score_name(scoring: Any) -> str:
    """ARI, also where the hidden rows are clustered alone, or the name of a user's own function."""
    return scoring.split("_")[0].upper() if isinstance(scoring, str) else escape(getattr(scoring, "__name__", "score"))
