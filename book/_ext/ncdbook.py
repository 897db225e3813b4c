"""What the book needs of Sphinx beyond ready-made extensions."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import re
import shutil
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)

WORDS_PER_MINUTE = 200


def fingerprint(root: Path) -> str:
    """Hash what a chapter's numbers depend on besides its own cells: package, results, environment, this file."""
    digest = hashlib.sha256(platform.python_version().encode())
    digest.update("\n".join(sorted({f"{d.name}=={d.version}" for d in distributions()})).encode())
    package = [path for path in root.glob("ncdlib/**/*") if path.suffix != ".pyc"]
    files = [*package, *root.glob("results/**/*"), root / "benchmarks/results.csv", Path(__file__)]
    # Hidden files are the locks of a measurement that is running.
    for path in sorted(path for path in files if path.is_file() and not path.name.startswith(".")):
        digest.update(f"\n{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def discard_stale_build(app: Sphinx, config: Config) -> None:
    """Forget executed chapters and parsed pages when what they were made from has changed.

    The execution cache looks at a chapter's own cells only: without this, a change in the package would leave
    the old numbers on the site.
    """
    build = Path(app.outdir).parent
    stored = build / ".fingerprint"
    current = fingerprint(Path(app.srcdir))
    if stored.is_file() and stored.read_text() == current:
        return
    logger.info("package, results or environment changed: every chapter is executed again")
    for folder in (build / ".jupyter_cache", Path(app.doctreedir)):
        if folder.exists():
            shutil.rmtree(folder)
    Path(app.doctreedir).mkdir(parents=True)
    stored.write_text(current)


def keep_only_clean_build(app: Sphinx, error: Exception | None) -> None:
    """After a build with an error or warning, forget the parsed pages, so that the next build warns again."""
    if error or app._warncount:
        shutil.rmtree(app.doctreedir)


def escape_fitted_names(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """A bare ``labels_`` in a docstring is the name of an attribute; reStructuredText takes it for a link.

    And several attributes on one line get a field each: Sphinx would take all names but the last for a type.
    """
    for i in reversed(range(len(lines))):
        if names := re.match(r":(?:ivar|vartype) (\w+(?:, \w+)+):", lines[i]):
            end = next((j for j in range(i + 1, len(lines)) if not lines[j].startswith(" ")), len(lines))
            field = lines[i:end]
            lines[i:end] = [line.replace(names[1], one) for one in names[1].split(", ") for line in field]
    for i, line in enumerate(lines):
        if ">>>" not in line:
            lines[i] = re.sub(r"(?<![\\`\w:.])(\w+)_(?=[\s,;:.)\]]|$)", r"\1\\_", line)


def share_version(app: Sphinx, config: Config) -> None:
    config.version = config.release = version("ncdlib")
    config.myst_substitutions = {**config.myst_substitutions, "version": config.version}


def drop_wrong_role(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Docutils calls a bibliography a list, but gives its entries another role than list items have."""
    context["body"] = context.get("body", "").replace(
        '<div role="list" class="citation-list">', '<div class="citation-list">'
    )


class TableFigure(nodes.figure):
    """A cell's output with a caption that counts as a table, not as a figure."""


class NumberTables(SphinxTransform):
    """Count figures named ``tab-...`` as tables: myst-nb makes every captioned cell output a figure."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        for figure in list(self.document.findall(nodes.figure)):
            if any(name.startswith("tab-") for name in figure["names"]):
                table = TableFigure("", *figure.children, **figure.attributes)
                figure.replace_self(table)
                self.document.ids.update(dict.fromkeys(table["ids"], table))  # cross-references look there


class ChapterTimes(Directive):
    """``{chapter-times}``: how long the chapter takes to read and, as measured in this build, to run."""

    def run(self) -> list[nodes.Node]:
        return [nodes.paragraph("", "", classes=["chapter-times"])]


def fill_chapter_times(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for paragraph in doctree.findall(nodes.paragraph):
        if "chapter-times" in paragraph["classes"]:
            words = sum(len(prose.astext().split()) for prose in doctree.findall(nodes.paragraph))
            minutes = math.ceil(words / WORDS_PER_MINUTE)
            seconds = app.env.nb_metadata[docname]["exec_data"]["runtime"]
            paragraph += nodes.Text(f"{minutes} min to read. Executed for this page in {seconds:.0f} s.")


def keep_together(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Let no line end within "96 %", "Chapter 7" and the like, nor between a formula and what is written up to it."""
    for text in list(doctree.findall(nodes.Text)):
        kept = re.sub(
            r" (?=%)|(?<=\b[Cc]hapter) (?=\d)|(?<=\bTable) (?=\d)|(?<=\bFig\.) (?=\d)", "\N{NO-BREAK SPACE}", text
        )
        if kept != text and not isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.math, nodes.raw)):
            text.parent.replace(text, nodes.Text(kept))
    for formula in list(doctree.findall(nodes.math)):
        after = formula.next_node(descend=False, siblings=True)
        if isinstance(after, nodes.Text) and (tail := re.match(r"\S+", after)):
            after.parent.replace(after, nodes.Text(after[tail.end() :]))
            together = nodes.inline(classes=["nowrap"])
            formula.replace_self(together)
            together += [formula, nodes.Text(tail[0])]


def setup(app: Sphinx) -> dict[str, Any]:
    # The kernels of the chapters inherit these.
    os.environ["NCDLIB_BOOK"] = "1"  # see ncdlib.plots.show_plotly
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # on rows this few, threads cost more than they bring
    app.add_enumerable_node(TableFigure, "table", html=(visit_table_figure, depart_table_figure))
    app.add_transform(NumberTables)
    for name in ("quiz", "chapters", "claims_in_text", "light_pages", "copies", "frontpage"):
        app.setup_extension(name)
    app.add_directive("chapter-times", ChapterTimes)
    app.connect("config-inited", discard_stale_build)
    app.connect("config-inited", share_version)
    app.connect("autodoc-process-docstring", escape_fitted_names, priority=600)  # after napoleon
    app.connect("doctree-resolved", fill_chapter_times)
    app.connect("doctree-resolved", keep_together)
    app.connect("html-page-context", drop_wrong_role)
    app.connect("build-finished", keep_only_clean_build)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def visit_table_figure(translator: Any, node: TableFigure) -> None:
    translator.visit_figure(node)


def depart_table_figure(translator: Any, node: TableFigure) -> None:
    translator.depart_figure(node)
