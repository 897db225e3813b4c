"""A copy of each chapter that reads well outside the site: numbers, references and directives written out.

In JupyterLab and Colab a chapter's source would show ``{glue:text}`accuracy```. The copies are made from the pages as
they were built, and have the code cells of the source and the outputs of the build. They are put into
``_build/html/notebooks``, which is published on the branch `BRANCH`, too, and the buttons of a chapter lead there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from sphinx.application import Sphinx

BRANCH = "notebooks"
"""The branch that has the copies in a folder of the same name, besides all that the main branch has."""
LINE_OF_CELL = 10_000  # myst-nb numbers the lines of the n-th cell from n times this


class MarkdownWriter:
    """Write a resolved page as the cells of a notebook."""

    def __init__(self, address: str, numbers: dict[str, dict[str, tuple[int, ...]]], code: dict[int, dict]) -> None:
        self.address, self.numbers = address, numbers
        self.code = dict(code)  # what is still to be placed, by its position in the source
        self.cells: list[dict] = []
        self.blocks: list[str] = []

    def write(self, document: nodes.document) -> list[dict]:
        self.children(document, level=0)
        self.place_code(before=None)
        self.flush()
        return self.cells

    # -- cells ------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        if self.blocks:
            cell = {"cell_type": "markdown", "id": f"text-{len(self.cells)}", "metadata": {}}
            self.cells.append(cell | {"source": "\n\n".join(self.blocks)})
            self.blocks = []

    def place_code(self, before: int | None) -> None:
        """Place the code cells up to a position, among them those that the page leaves out."""
        for position in sorted(self.code):
            if before is None or position < before:
                self.flush()
                self.cells.append(self.code.pop(position))

    # -- blocks -----------------------------------------------------------------------------------------------------

    def children(self, node: nodes.Element, level: int) -> None:
        for child in node.children:
            if (child.line or 0) >= LINE_OF_CELL:
                self.place_code(before=child.line // LINE_OF_CELL - 1)
            self.block(child, level)

    def block(self, node: nodes.Node, level: int) -> None:
        if isinstance(node, nodes.container) and node.get("nb_element") == "cell_code":
            self.place_code(before=node["cell_index"] + 1)
            for figure in node.findall(nodes.figure):
                self.blocks.append(self.caption(figure))
        elif type(node).__name__ in ("solution_node", "exercise_node", "exercise_enumerable_node"):
            # Not a quotation: cells of code may be within.
            title, *content = node.children
            self.blocks.append(f"**{self.label(node)}{self.inlines(title).replace('[ ', ' [')}**")
            for part in content:
                self.children(part, level)
        elif isinstance(node, nodes.section):
            self.children(node, level + 1)
        elif isinstance(node, nodes.container):
            self.children(node, level)
        else:
            self.blocks += [text for text in self.markdown(node, level) if text.strip()]

    def markdown(self, node: nodes.Node, level: int = 1) -> Iterator[str]:
        """The Markdown of a block without code cells in it, as one text or several."""
        name = type(node).__name__
        if isinstance(node, nodes.title):
            yield "#" * max(level, 1) + " " + self.inlines(node)
        elif isinstance(node, (nodes.bullet_list, nodes.enumerated_list)):
            yield self.listed(node)
        elif isinstance(node, nodes.definition_list):
            for item in node.children:
                term, *rest = item.children
                yield f"- **{self.inlines(term)}**: " + indented(self.joined(rest))
        elif isinstance(node, nodes.literal_block):
            language = node.get("language", "")
            yield f"```{'' if language in ('default', 'none') else language}\n{node.astext()}\n```"
        elif isinstance(node, nodes.math_block):
            yield f"$$\n{node.astext().strip()}\n$$"
        elif isinstance(node, nodes.figure):
            yield from (text for child in node.children for text in self.figure_part(node, child))
        elif isinstance(node, nodes.table):
            yield from self.table(node)
        elif isinstance(node, nodes.image):
            yield self.inline(node)
        elif name == "algorithm_node":
            title = f"**{self.label(node)} {self.inlines(node.children[0])}**"
            yield quoted(f"{title}\n\n{self.joined(node.children[1:])}")
        elif isinstance(node, nodes.Admonition):
            titled = isinstance(node.children[0], nodes.title)
            title = self.inlines(node.children[0]) if titled else name.capitalize()
            yield quoted(f"**{title}**\n\n{self.joined(node.children[titled:])}")
        elif isinstance(node, nodes.block_quote):
            yield quoted(self.joined(node.children))
        elif isinstance(node, (nodes.paragraph, nodes.rubric)):
            yield self.inlines(node)
        elif isinstance(node, nodes.raw):
            yield node.astext() if node.get("format") == "html" else ""
        elif isinstance(node, (nodes.comment, nodes.target, nodes.system_message, nodes.substitution_definition)):
            return
        elif isinstance(node, nodes.Element):
            for child in node.children:
                yield from self.markdown(child, level)
        else:
            yield self.inline(node)

    def joined(self, children: list[nodes.Node]) -> str:
        return "\n\n".join(text for child in children for text in self.markdown(child) if text.strip())

    def listed(self, node: nodes.Element) -> str:
        ordered = isinstance(node, nodes.enumerated_list)
        marks = (f"{i}. " if ordered else "- " for i, _ in enumerate(node.children, start=node.get("start", 1)))
        items = zip(marks, node.children, strict=True)
        return "\n".join(mark + indented(self.joined(item.children), len(mark)) for mark, item in items)

    def table(self, node: nodes.table) -> Iterator[str]:
        for title in node.findall(nodes.title):
            yield f"**{self.label(node)}:** {self.inlines(title)}"
        rows = []
        for row in node.findall(nodes.row):
            cells = [self.joined(entry.children).replace("\n\n", "<br>").replace("\n", " ") for entry in row.children]
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        width = len(next(node.findall(nodes.row)).children)
        has_head = next(node.findall(nodes.thead), None) is not None
        head = rows[:1] if has_head else ["|" + "  |" * width]
        yield "\n".join([*head, "|" + "---|" * width, *rows[has_head:]])

    def figure_part(self, figure: nodes.figure, child: nodes.Node) -> Iterator[str]:
        if isinstance(child, nodes.caption):
            yield self.caption(figure)
        else:
            yield from self.markdown(child)

    def caption(self, figure: nodes.figure) -> str:
        texts = [self.inlines(caption) for caption in figure.findall(nodes.caption)]
        return f"**{self.label(figure)}.** {' '.join(texts)}"

    def label(self, node: nodes.Element) -> str:
        """The kind and number of what counts itself, such as "Figure 2.1"; nothing for the rest."""
        for kind in ("figure", "table", "algorithm", "exercise"):
            for id_ in node["ids"]:
                if number := self.numbers.get(kind, {}).get(id_):
                    return f"{kind.capitalize()} {'.'.join(map(str, number))}"
        return ""

    # -- text -------------------------------------------------------------------------------------------------------

    def inlines(self, node: nodes.Element) -> str:
        return "".join(self.inline(child) for child in node.children).strip()

    def inline(self, node: nodes.Node) -> str:
        if isinstance(node, nodes.Text):
            return re.sub(r"([*`\[\]]|(?<!\w)_|_(?!\w))", r"\\\1", str(node)).replace("<", "&lt;").replace("\n", " ")
        if isinstance(node, nodes.math):
            return f"${node.astext()}$"
        if isinstance(node, nodes.literal):
            mark = "``" if "`" in node.astext() else "`"
            return f"{mark}{node.astext()}{mark}"
        if isinstance(node, nodes.raw):
            return node.astext() if node.get("format") == "html" else ""
        if isinstance(node, nodes.image):
            return f"![{node.get('alt', '')}]({urljoin(self.address, '../_images/' + Path(node['uri']).name)})"
        text = "".join(self.inline(child) for child in node.children)
        if isinstance(node, (nodes.emphasis, nodes.title_reference)):
            return f"*{text}*"
        if isinstance(node, nodes.strong):
            return f"**{text}**"
        if isinstance(node, nodes.reference):
            target = node.get("refuri") or f"#{node.get('refid', '')}"
            return f"[{text}]({urljoin(self.address, target)})"
        return text


def indented(text: str, width: int = 2) -> str:
    return text.replace("\n", "\n" + " " * width)


def quoted(text: str) -> str:
    """Mark each line of a text as quoted.

    >>> quoted("a\\n\\nb")
    '> a\\n>\\n> b'
    """
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def code_cells(notebook: nbformat.NotebookNode) -> dict[int, dict]:
    """The code cells of an executed chapter by their positions, with the outputs that another place can show."""
    cells = {}
    for position, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            hidden = bool({"hide-input", "hide-cell", "remove-cell"} & set(cell["metadata"].get("tags", [])))
            metadata = {"jupyter": {"source_hidden": True}} if hidden else {}
            outputs = [output for output in cell["outputs"] if shows_elsewhere(output)]
            cells[position] = cell | {"metadata": metadata, "outputs": outputs, "execution_count": None}
    return cells


def shows_elsewhere(output: dict) -> bool:
    """Whether an output shows outside the site: not glued values, nor figures for which the site has the script."""
    html = "".join(output.get("data", {}).get("text/html", ""))
    return "scrapbook" not in output.get("metadata", {}) and "plotly-graph-div" not in html


def write_copy(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    source = Path(app.env.doc2path(docname))
    if app.builder.format != "html" or source.suffix != ".ipynb":
        return
    cache = get_cache(Path(app.outdir).parent / ".jupyter_cache")
    _, executed = cache.merge_match_into_notebook(nbformat.read(source, as_version=4))
    address = urljoin(app.config.html_baseurl, f"{docname}.html")
    writer = MarkdownWriter(address, app.env.toc_fignumbers.get(docname, {}), code_cells(executed))
    cells = writer.write(doctree)
    note = f"*A copy of [this page of the book]({address}), with the numbers that its build computed written out.*"
    cells.insert(1, {"cell_type": "markdown", "id": "where-from", "metadata": {}, "source": note})
    executed.cells = [nbformat.from_dict(cell) for cell in cells]
    path = Path(app.outdir) / "notebooks" / source.name
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.validate(executed)
    nbformat.write(executed, path)


def lead_to_copies(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let the buttons that open or download a chapter lead to its copy."""
    name = Path(page).name
    main = app.config.html_theme_options.get("repository_branch") or "main"
    places = {
        f"_sources/{page}.ipynb": f"notebooks/{name}.ipynb",
        f"/{main}?urlpath=lab/tree/{page}.ipynb": f"/{BRANCH}?urlpath=lab/tree/notebooks/{name}.ipynb",
        f"/blob/{main}/{page}.ipynb": f"/blob/{BRANCH}/notebooks/{name}.ipynb",
    }
    for button in buttons_within(context.get("header_buttons", [])):
        for source, copy in places.items():
            button["url"] = button["url"].replace(source, copy)


def buttons_within(buttons: list[dict]) -> Iterator[dict]:
    for button in buttons:
        yield from buttons_within(button.get("buttons", []))
        if "url" in button:
            yield button


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-resolved", write_copy, priority=900)
    app.connect("html-page-context", lead_to_copies, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
