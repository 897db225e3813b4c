"""The evidence on a page: tables, figures, and the ledger of claims as a list that can be filtered."""

from __future__ import annotations

import os
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ncdlib.datasets import DATASETS, find_files
from ncdlib.evidence import measure
from ncdlib.evidence.claims import ALL_VIEWS, HOLDS, UNKNOWN, VERDICTS
from ncdlib.evidence.compare import ORIGINS, compare_with_paper, show_table, within_tolerance
from ncdlib.evidence.experiments import MENDED
from ncdlib.evidence.paper import DATASETS as PAPER_DATASETS
from ncdlib.evidence.paper import PAPER_NAME_OF, PAPER_NUMBER
from ncdlib.evidence.results import load_results
from ncdlib.plots import PALETTE

if TYPE_CHECKING:
    from IPython.display import HTML
    from pandas.io.formats.style import Styler

COLORS = PALETTE | {
    MENDED: "#b58fc9",
    "KM PBN": PALETTE["PBN"],
    "SC PBN default": PALETTE["NCD SC"],
    "SC PBN full opt": PALETTE["SC"],
}


def render_table(
    table: str,
    metric: str = "ACC",
    methods: Iterable[str] | None = None,
    folder: str | os.PathLike | None = None,
) -> Styler:
    """One table of the paper for a page: under each figure of the paper ours, with either origin of hyperparameters.

    A figure further from the paper's than max(2 paper std, 3 points) is marked with "≠"; the best of a row is bold; a
    data set of which we have a variant only is marked with "*".

    Examples
    --------
    >>> from ncdlib.evidence.show import render_table
    >>> list(render_table("clust").columns)
    ['k-means', 'NCD k-means', 'SC', 'NCD SC']
    """
    cells = compare_with_paper(folder)
    cells = cells[(cells["table"] == table) & (cells["metric"] == metric)]
    shown = show_table(table, metric, methods, cells=cells)
    for origin in ORIGINS:
        within = within_tolerance(cells, origin)
        for cell in cells.loc[within.index[~within]].itertuples():
            row = [label for label in shown.index if label.removesuffix("*") == PAPER_NAME_OF[cell.dataset]]
            column = (cell.method, origin)
            if column in shown.columns:
                shown.loc[row, column] = "≠ " + shown.loc[row, column]
    shown = shown.stack(level=1, future_stack=True)  # noqa: PD013 (keeps the order)
    return narrow(shown.style.apply(_bold_best, axis=1))


def narrow(table: Styler) -> Styler:
    """Make a table small enough for a page: five columns of a mean and its spread beside each other.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.evidence.show import narrow
    >>> "font-size" in narrow(pd.DataFrame({"ACC": ["81.7 ± 0.1"]}).style).to_html()
    True
    """
    return table.set_table_attributes('class="dataframe"').set_table_styles(
        [
            {"selector": "td, th", "props": "padding: 0.2rem 0.35rem; text-align: right; font-size: 0.8rem"},
            {"selector": "td", "props": "white-space: nowrap"},
        ]
    )


def _bold_best(row: pd.Series) -> list[str]:
    values = pd.to_numeric(row.str.removeprefix("≠ ").str.split(" ").str[0], errors="coerce")
    compared = values.notna().sum() > 1  # the only one is not the best of anything
    return ["font-weight: 700" if compared and v == values.max() else "" for v in values]


def plot_against_paper(cells: pd.DataFrame) -> Figure:
    """Our figures over the paper's, one dot a cell, with the spread of the runs on both sides.

    Parameters
    ----------
    cells : DataFrame
        Rows of `compare_with_paper`.

    Examples
    --------
    >>> from ncdlib.evidence import compare_with_paper
    >>> from ncdlib.evidence.show import plot_against_paper
    >>> cells = compare_with_paper()
    >>> figure = plot_against_paper(cells[cells["table"] == "clust"])
    >>> len(figure.axes)
    2
    """
    cells = cells[(cells["dataset"] != "average") & cells["paper"].notna()]
    fig, axes = plt.subplots(1, 2, figsize=(8, 4.3), sharex=True, sharey=True)
    low, high = cells["paper"].min() - 6, min(cells["paper"].max() + 6, 102)
    line = np.array([low, high])
    for ax, origin in zip(axes, ORIGINS, strict=True):
        ax.fill_between(line, line - 3, line + 3, color="#e5e7eb", lw=0)
        ax.plot(line, line, color="#9ca3af", lw=1)
        measured = cells[cells[origin].notna()]
        for method, group in measured.groupby("method", sort=False):
            color = COLORS.get(method, "#4b5563")
            ax.errorbar(
                group["paper"],
                group[origin],
                xerr=group["paper_std"],
                yerr=group[f"{origin}_std"].fillna(0),  # a single run has no spread
                fmt="none",
                ecolor=color,
                elinewidth=0.8,
                alpha=0.5,
            )
            original = (group["source"] == "original").to_numpy()
            ax.scatter(group["paper"][original], group[origin][original], color=color, s=26, label=method, zorder=3)
            ax.scatter(group["paper"][~original], group[origin][~original], ec=color, fc="white", s=26, zorder=3)
        _name_the_farthest(ax, measured, origin)
        title = "published hyperparameters" if origin == "published" else "our own search"
        ax.set(title=f"{title}: {len(measured)} of {len(cells)} cells", xlabel="the paper")
        ax.set_aspect("equal")
    axes[0].set(ylabel="ours", xlim=(low, high))
    handles = {label: h for ax in axes for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if handles:
        fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return fig


def _name_the_farthest(ax: plt.Axes, measured: pd.DataFrame, origin: str, n: int = 4) -> None:
    off = (measured[origin] - measured["paper"]).abs().sort_values(ascending=False)
    for index in off.index[:n]:
        row = measured.loc[index]
        if off[index] > max(2 * np.nan_to_num(row["paper_std"]), 3):
            ax.annotate(
                PAPER_NAME_OF[row["dataset"]],
                (row["paper"], row[origin]),
                xytext=(5, 4),
                textcoords="offset points",
                fontsize=8,
            )


def share_within(cells: pd.DataFrame, origin: str) -> str:
    """How many measured cells agree with the paper, in words.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.evidence.show import share_within
    >>> cell = {"dataset": "letter", "metric": "ACC", "method": "PBN", "paper": 62.4, "paper_std": 2.0}
    >>> share_within(pd.DataFrame([cell | {"published": 60.0}]), "published")
    '1 of 1 measured (100 %)'
    """
    within = within_tolerance(cells, origin)
    if within.empty:
        return "none measured"
    return f"{within.sum()} of {len(within)} measured ({within.mean():.0%})".replace("%", " %")


def runs_in_words(runs: pd.Series) -> str:
    """How many runs the measured cells have, for a caption.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.evidence.show import runs_in_words
    >>> runs_in_words(pd.Series([10, 10, 3, 0]))
    '10 runs each, fewer in 1 of 3 measured'
    """
    runs = runs[runs > 0]
    if runs.empty:
        return "not measured"
    most, fewer = int(runs.max()), int((runs < runs.max()).sum())
    text = f"{most} run{'s' if most > 1 else ''} each"
    return text + (f", fewer in {fewer} of {len(runs)} measured" if fewer else "")


def starred_names(folder: str | os.PathLike | None = None) -> dict[str, str]:
    """Name the data sets as the paper does, with a star where our runs are on a variant of the original.

    Examples
    --------
    >>> from ncdlib.evidence.show import starred_names
    >>> names = starred_names()
    >>> names["letter"], names["census"]
    ('Letter', 'Census*')
    """
    source = load_results(folder).groupby("dataset")["source"].first()
    return {name: PAPER_NAME_OF[name] + "*" * (source.get(name, "original") != "original") for name in PAPER_DATASETS}


def glue_all(**values: object) -> None:
    """Hand values to the text of a chapter, each under its name, with NumPy's scalars as plain numbers.

    The text shows a value with ``{glue:text}`name:.1f` ``. A NumPy scalar could not be formatted there.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.evidence.show import glue_all
    >>> glue_all(accuracy=np.float64(76.5), best="PBN")
    """
    from myst_nb import glue

    for name, value in values.items():
        glue(name, value.item() if isinstance(value, np.generic) else value, display=False)


def rerun(
    table: str,
    dataset: str,
    method: str,
    *,
    runs: int = 1,
    variant: str = "",
    folder: str | os.PathLike | None = None,
) -> pd.DataFrame:
    """Measure a cell again where its data files are on this computer; elsewhere say what is needed.

    Examples
    --------
    >>> from ncdlib.evidence.show import rerun
    >>> print("columns:"); list(rerun("clust", "pendigits", "k-means").columns)  # doctest: +ELLIPSIS
    columns:
    ...['origin', 'metric', 'runs', 'paper', 'stored', 'now', 'same']
    """
    if None in find_files(DATASETS[dataset]).values():
        print(f"The files of {dataset} are not on this computer. To get them: ncd data {dataset} --download")
        return pd.DataFrame(columns=["origin", "metric", "runs", "paper", "stored", "now", "same"])
    cell = measure.verify(table, dataset, method, runs=runs, variant=variant, folder=folder).round(1)
    same = cell["same"].map({True: "yes", False: "no"}).fillna("nothing stored")
    return cell.assign(same=same).astype(object).fillna("–")  # the paper has no NMI and ARI with k known


# -- claims -----------------------------------------------------------------------------------------------------------

SHOWN_AT = {
    "clust": "known_k.html#tab-known-k-clust",
    "ncd": "known_k.html#tab-known-k-ncd",
    "ncd_k_est": "estimated_k.html#tab-estimated-k-acc",
    "pbn_sc": "pbn_spectral.html#tab-pbn-spectral-acc",
    "silhouette_results": "how_many.html#tab-how-many-stored",
    "clust_results_different_convergence": "kmeans.html#tab-kmeans-convergence",
    "letter_corr": "hidden_classes.html#tab-hidden-classes-corr",
    "perf_wrt_share": "more_novel_classes.html#fig-more-novel-classes-letter",
    "choices": "unreported.html#tab-unreported-effects",
}
"""Where the book shows what was measured for a table or figure."""
SLIPS = "unreported.html#slips"  # claims that the paper's own figures answer

_STYLE = """
<style>
.claims { margin: 1rem 0; }
.claims code { overflow-wrap: anywhere; white-space: normal; }
.claims .filters { display: flex; flex-wrap: wrap; gap: .6rem; align-items: end; margin-bottom: .8rem; }
.claims .filters label { display: flex; flex-direction: column; font-size: .85rem; gap: .2rem; }
.claims .filters input, .claims .filters select { font: inherit; padding: .3rem .4rem; max-width: 100%;
  border: 1px solid #8b95a3; border-radius: 4px; }
.claims details { border: 1px solid #8b95a3; border-radius: 6px; padding: .45rem .7rem; margin: .4rem 0; }
.claims summary { cursor: pointer; }
.claims .verdict { display: inline-block; border-radius: 4px; padding: 0 .45rem; margin-right: .4rem;
  font-size: .85rem; font-weight: 600; white-space: nowrap; }
.claims .holds { background: #dcfce7; color: #14532d; }
.claims .holds-in-part { background: #fef3c7; color: #713f12; }
.claims .does-not-hold { background: #fee2e2; color: #7f1d1d; }
.claims .cannot-be-judged-here { background: #e5e7eb; color: #374151; }
.claims dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .25rem .8rem; margin: .6rem 0; }
.claims dt { font-weight: 600; }
.claims dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 600px) { .claims dl { grid-template-columns: 1fr; } .claims dd { margin-bottom: .4rem; } }
</style>
"""

_SCRIPT = """
<script>
(function () {
  const root = document.getElementById("claims-ledger");
  const [text, verdict, chapter] = ["text", "verdict", "chapter"].map(n => root.querySelector(`[name=${n}]`));
  const cards = [...root.querySelectorAll("details")];
  const count = root.querySelector("[role=status]");
  function apply() {
    const words = text.value.toLowerCase().split(" ").filter(Boolean);
    let shown = 0;
    for (const card of cards) {
      const content = card.textContent.toLowerCase();
      const hit = words.every(w => content.includes(w))
        && (!verdict.value || card.dataset.verdict === verdict.value)
        && (!chapter.value || card.dataset.chapter === chapter.value);
      card.hidden = !hit;
      shown += hit;
    }
    count.textContent = `${shown} of ${cards.length} claims`;
  }
  [text, verdict, chapter].forEach(field => field.addEventListener("input", apply));
  function open() {
    const card = location.hash && document.getElementById(location.hash.slice(1));
    if (card && card.tagName === "DETAILS") { card.open = true; card.scrollIntoView(); }
  }
  window.addEventListener("hashchange", open);
  open();
  apply();
})();
</script>
"""


def claims_html(claims: pd.DataFrame, *, filters: bool = False, open_first: bool = False) -> HTML:
    """Claims with their verdicts as a list to unfold, each with the numbers behind it and how to measure it again.

    Parameters
    ----------
    claims : DataFrame
        Rows of `ledger`.
    filters : bool
        Put fields above the list that narrow it down (once on a page).
    open_first : bool
        Unfold the first claim.

    Examples
    --------
    >>> from ncdlib.evidence import ledger
    >>> from ncdlib.evidence.show import claims_html
    >>> page = claims_html(ledger().head(2), filters=True)
    >>> page.data.count("<details")
    2
    """
    from IPython.display import HTML

    cards = "".join(
        _card(row, opened=open_first and i == 0, anchor=filters) for i, row in enumerate(claims.itertuples())
    )
    if not filters:
        return HTML(f'{_STYLE}<div class="claims">{cards}</div>')
    options = "".join(f'<option value="{v}">{v}</option>' for v in VERDICTS)
    chapters = "".join(f'<option value="{c}">chapter {c}</option>' for c in sorted(set(claims["chapter"])))
    fields = (
        '<div class="filters"><label>words <input name="text" type="search" autocomplete="off"></label>'
        f'<label>verdict <select name="verdict"><option value="">all</option>{options}</select></label>'
        f'<label>chapter <select name="chapter"><option value="">all</option>{chapters}</select></label>'
        f'<span role="status">{len(claims)} claims</span></div>'
    )
    return HTML(f'{_STYLE}<div class="claims" id="claims-ledger">{fields}{cards}</div>{_SCRIPT}')


def _badge(verdict: str) -> str:
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'


_VIEW_NAMES = {
    "published": "ours, published hyperparameters",
    "searched": "ours, own search",
    "mended": "ours, TabularNCD mended",
}


def _card(row, opened: bool, anchor: bool) -> str:
    lines = []
    if row.paper_verdict:
        lines.append(("the paper's own tables", _badge(row.paper_verdict) + escape(row.paper)))
    else:
        lines.append(("the paper", escape(row.paper)))
    for name in ALL_VIEWS:
        if getattr(row, f"{name}_verdict"):
            lines.append((_VIEW_NAMES[name], _badge(getattr(row, f"{name}_verdict")) + escape(getattr(row, name))))
    if row.cells and row.without_variants not in (row.verdict, UNKNOWN):
        lines.append(("without Human and Census", _badge(row.without_variants)))
    for name, text in (("still missing", row.missing), ("data", row.caveat)):
        if text:
            lines.append((name, escape(text)))
    if row.cells:
        tables = dict.fromkeys(cell.split(" / ")[0] for cell in row.cells.split("; "))
        lines.append(("measured in", ", ".join(_link(table) for table in tables)))
        lines.append(("measure it again", "<br>".join(f"<code>{escape(c)}</code>" for c in _commands(row.cells))))
    else:
        lines.append(("checked in", f'<a href="{SLIPS}">chapter {int(SLIPS[:2])}</a>'))
    if not anchor:
        lines.append(("in the ledger", f'<a href="claims.html#claim-{row.id}">{row.id}</a>'))
    rows = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in lines)
    id_ = f' id="claim-{row.id}"' if anchor else ""
    return (
        f'<details{id_} data-verdict="{row.verdict}" data-chapter="{row.chapter}"{" open" if opened else ""}>'
        f"<summary>{_badge(row.verdict)}{escape(row.claim)} <small>({escape(row.place)})</small></summary>"
        f"<dl>{rows}</dl></details>"
    )


def _link(table: str) -> str:
    chapter = int(SHOWN_AT[table][:2])
    label = f"{PAPER_NUMBER[table]} in chapter {chapter}" if table in PAPER_NUMBER else f"chapter {chapter}"
    return f'<a href="{SHOWN_AT[table]}">{label}</a>'


def _commands(cells: str) -> list[str]:
    """The commands that measure the cells of a claim again, on a data set that is quick."""
    commands = []
    for cell in cells.split("; "):
        table, method = cell.split(" / ")
        if table == measure.CORRELATION:
            again = f'ncd reproduce {table} --datasets pendigits --methods "{method}" --again'
            commands.append(f"cp -r results copy; NCDLIB_RESULTS=copy {again}")
        elif table == "perf_wrt_share":
            commands.append(
                f'ncd verify {table} --dataset letter --method "{method}" --variant "7 novel, combination 0"'
            )
        else:
            commands.append(f'ncd verify {table} --dataset pendigits --method "{method}"')
    return commands


def verdicts(claims: pd.DataFrame) -> dict[str, str]:
    """The verdict of each claim by its id, for sentences."""
    return dict(zip(claims["id"], claims["verdict"], strict=True))


def count_of_verdicts(claims: pd.DataFrame) -> str:
    """How many claims got which verdict, in words.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.evidence.show import count_of_verdicts
    >>> count_of_verdicts(pd.DataFrame({"verdict": ["holds", "holds", "does not hold"]}))
    '2 hold, 1 does not hold'
    """
    counts = claims["verdict"].value_counts()
    plural = {HOLDS: "hold", "holds in part": "hold in part", "does not hold": "do not hold"}
    parts = [f"{counts[v]} {v if counts[v] == 1 else plural.get(v, v)}" for v in VERDICTS if v in counts]
    return ", ".join(parts)
