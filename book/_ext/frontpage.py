"""What the landing page shows, made from data when the book is built: ``{hero}`` and ``{findings}``.

``{hero}``
    Rows of handwritten digits that part into groups while PBN learns: `hero.js` draws the pictures made here.
``{findings}``
    A bar of the verdicts on the paper's claims, and six answers, each with its verdict and a link to its claim.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive
from PIL import Image
from sphinx.application import Sphinx

N_ROWS = 260
EPOCHS = (1, 3, 10, 30, 100)
UNTRAINED = {"epochs": 1, "lr": 1e-12}
GRID = 999  # places are whole numbers from 0 to this


def digits_while_pbn_learns() -> dict[str, Any]:
    """Test rows of the digits in PBN's latent space, before training and after some epochs, as places in a plane.

    Each t-SNE picture starts from the one before, so that the rows travel and do not jump. The classes are for the
    colours only: PBN has seen the labels of the known classes' train rows.
    """
    from ncdlib import PBN, load_dataset
    from sklearn.manifold import TSNE

    problem = load_dataset("digits")
    plane: Any = "pca"
    places = []
    for settings in (UNTRAINED, *({"epochs": epochs} for epochs in EPOCHS)):
        model = PBN(len(problem.novel_classes), random_state=0, verbose=False, **settings).fit(problem.X, problem.y)
        tsne = TSNE(init=plane, max_iter=500, random_state=0)
        picture = tsne.fit_transform(model.transform(problem.X_test).astype(float)).astype(float)
        picture = (picture - picture.min(axis=0)) / np.ptp(picture, axis=0)
        places.append((picture * GRID).round().astype(int))
        plane = 1e-2 * (picture - 0.5)  # t-SNE wants a small start
    shown = np.random.default_rng(0).choice(len(problem.X_test), N_ROWS, replace=False)
    images = problem.images_test[shown]
    sheet = (255 * images / images.max()).astype(np.uint8).reshape(-1, images.shape[2])  # one under the other
    file = io.BytesIO()
    Image.fromarray(sheet).save(file, "PNG", optimize=True)
    known, novel = list(problem.known_classes), list(problem.novel_classes)
    classes = problem.y_test[shown]
    return {
        "epochs": [0, *EPOCHS],
        "known": [bool(c in known) for c in classes],
        "color": [int((known if c in known else novel).index(c)) for c in classes],
        "places": [place[shown].tolist() for place in places],
        "sheet": base64.b64encode(file.getvalue()).decode(),
    }


def stored_digits(build: Path) -> dict[str, Any]:
    """The same, from the folder of the build where nothing it depends on has changed since."""
    fingerprint = build / ".fingerprint"
    key = (fingerprint.read_text() if fingerprint.is_file() else "") + Path(__file__).read_text(encoding="utf-8")
    path = build / ".hero.json"
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if stored.get("key") != key:
        stored = {"key": key, "hero": digits_while_pbn_learns()}
        path.write_text(json.dumps(stored), encoding="utf-8")
    return stored["hero"]


HERO = """
<figure class="hero" aria-label="Handwritten digits, first in one heap, part into ten groups while a network learns.">
<canvas width="1200" height="520" role="img" aria-label="Small pictures of digits: known classes in blue and grey, novel
classes in warm colours. At first all are mixed; in the end each digit is in a group of its own."></canvas>
<figcaption><button type="button" class="hero-pause">Pause</button> <span class="hero-epoch"></span>
Real rows in the latent space of PBN while it learns. It was told the names of the <span class="known">blue and
grey</span> digits only; the <span class="novel">warm</span> ones it sorts out by itself.</figcaption>
<script type="application/json">{data}</script>
</figure>
"""


class Hero(Directive):
    def run(self) -> list[nodes.Node]:
        from ncdlib.plots import KNOWN_COLORS, NOVEL_COLORS

        env = self.state.document.settings.env
        env.note_dependency(__file__)
        data = stored_digits(Path(env.app.outdir).parent) | {"colors": {"known": KNOWN_COLORS, "novel": NOVEL_COLORS}}
        return [nodes.raw("", HERO.format(data=json.dumps(data, separators=(",", ":"))), format="html")]


# -- the findings -----------------------------------------------------------------------------------------------------


def _average(cells, table: str, method: str, origin: str) -> float:
    row = (cells["table"] == table) & (cells["method"] == method) & (cells["dataset"] == "average")
    return float(cells.loc[row, origin].iloc[0])


def reproduced(claims, cells) -> str:
    from ncdlib.evidence.show import share_within

    return f"With the authors' hyperparameters our figures agree with theirs in {share_within(cells, 'published')}."


def searched(claims, cells) -> str:
    published, own = (_average(cells, "ncd", "PBN", origin) for origin in ("published", "searched"))
    return (
        f"PBN reaches {published:.1f} % on average with the authors' hyperparameters, and {own:.1f} % with those that "
        "the paper's own procedure found for us."
    )


def pbn_wins(claims, cells) -> str:
    known = {origin: _lead(cells, "PBN", "NCD SC", origin) for origin in ("published", "searched")}
    return (
        f"With the number of classes known, its lead over NCD SC is {known['published']:+.1f} points with the authors' "
        f"hyperparameters and {known['searched']:+.1f} with our own search."
    )


def _lead(cells, method: str, other: str, origin: str) -> float:
    return _average(cells, "ncd", method, origin) - _average(cells, "ncd", other, origin)


def winner(claims, cells) -> str:
    averages = cells[(cells["dataset"] == "average") & cells["table"].isin(["clust", "ncd"])].dropna(subset="searched")
    best = averages.sort_values("searched", ascending=False).drop_duplicates("method")
    first, second = best.iloc[0], best.iloc[1]
    return (
        f"Where everyone has to find their own hyperparameters, {first['method']} has the highest average "
        f"({first['searched']:.1f} %), before {second['method']} ({second['searched']:.1f} %)."
    )


def counted(claims, cells) -> str:
    estimates = cells[cells["table"] == "silhouette_results"].pivot(
        index="dataset", columns="method", values="published"
    )
    wrong = (estimates["Silhouette (PBN latent space)"] - estimates["Ground-truth"]).abs().dropna()
    return (
        f"The silhouette in PBN's latent space is right on {(wrong == 0).sum()} of {len(wrong)} data sets, and off by "
        f"{wrong.mean():.1f} classes on average."
    )


def unreported(claims, cells) -> str:
    return f"That plain k-means may choose among its starts, too. {claims['known-classes-make-the-gain'].published}."


FINDINGS: tuple[tuple[str, str, Callable], ...] = (
    ("Does the paper reproduce?", "pbn-average-known", reproduced),
    ("Does its search work?", "hidden-classes-tune", searched),
    ("Does PBN win?", "pbn-best-average-known", pbn_wins),
    ("What wins?", "ncd-sc-best-average", winner),
    ("How many classes are there?", "k-estimated-well", counted),
    ("What did nobody report?", "known-classes-make-the-gain", unreported),
)
"""Question, the claim of the ledger it is about, and the sentence that answers it from the measurements."""


def findings_html(claims, cells) -> str:
    """The bar and the answers; `claims` as `ledger` gives them, `cells` as `compare_with_paper` does."""
    from ncdlib.evidence.claims import VERDICTS

    counts = claims["verdict"].value_counts()
    marks = {verdict: verdict.replace(" ", "-") for verdict in VERDICTS}
    bar = "".join(
        f'<a class="{marks[v]}" style="flex-grow: {counts[v]}" href="book/claims.html?{urlencode({"verdict": v})}">'
        f"<b>{counts[v]}</b> {v}</a>"
        for v in VERDICTS
        if v in counts
    )
    by_id = {row.id: row for row in claims.itertuples()}
    answers = "".join(
        f'<li><a href="book/claims.html#claim-{id_}"><b>{escape(question)}</b> '
        f'<span class="verdict {marks[by_id[id_].verdict]}">{by_id[id_].verdict}</span></a>'
        f"<span>{escape(answer(by_id, cells))}</span></li>"
        for question, id_, answer in FINDINGS
    )
    return (
        f'<div class="findings"><p class="verdict-bar" role="group" aria-label="Verdicts on {len(claims)} claims of '
        f'the paper">{bar}</p><ul>{answers}</ul></div>'
    )


class Findings(Directive):
    def run(self) -> list[nodes.Node]:
        from ncdlib.evidence import compare_with_paper, ledger

        self.state.document.settings.env.note_dependency(__file__)
        return [nodes.raw("", findings_html(ledger(), compare_with_paper()), format="html")]


# -- the preview of a link --------------------------------------------------------------------------------------------


def draw_preview(hero: dict[str, Any], path: Path) -> None:
    """The picture that messengers show of a link to the book: the digits in their groups, and the title."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from ncdlib.plots import KNOWN_COLORS, NOVEL_COLORS

    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(hero["sheet"])))) / 255
    images = sheet.reshape(-1, sheet.shape[1], sheet.shape[1])
    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    ax = figure.add_axes((0.4, 0.04, 0.58, 0.92), xlim=(-30, GRID + 30), ylim=(GRID + 30, -30))
    ax.set_axis_off()
    for image, known, color, (x, y) in zip(images, hero["known"], hero["color"], hero["places"][-1], strict=True):
        ink = np.empty((*image.shape, 4))
        ink[..., :3] = mpl.colors.to_rgb((KNOWN_COLORS if known else NOVEL_COLORS)[color])
        ink[..., 3] = image
        ax.imshow(ink, extent=(x - 22, x + 22, y + 22, y - 22), zorder=2)
    figure.text(0.04, 0.62, "Novel class\ndiscovery in\ntabular data", size=34, weight="bold", va="center")
    figure.text(
        0.04, 0.28, "A book with live code that\nteaches it and checks a paper,\nclaim by claim", size=17, va="center"
    )
    figure.savefig(path, facecolor="white")


def write_preview(app: Sphinx, error: Exception | None) -> None:
    stored = Path(app.outdir).parent / ".hero.json"
    if error is None and stored.is_file():
        draw_preview(
            json.loads(stored.read_text(encoding="utf-8"))["hero"], Path(app.outdir) / "_static" / "preview.png"
        )


def add_script(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if 'class="hero"' in context.get("body", ""):
        app.add_js_file("hero.js", loading_method="defer")
        app.add_css_file("frontpage.css")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("hero", Hero)
    app.add_directive("findings", Findings)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write_preview)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
