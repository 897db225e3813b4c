"""``{chapter}`pbn```: a link that says "chapter 5", whatever number `_toc.yml` gives that chapter today.

``{Chapter}`pbn``` begins a sentence, and ``{chapter-number}`pbn``` is the number alone, for "chapters 10 to 13".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole


def chapter_numbers(toc: Path) -> dict[str, int]:
    """Read the number of each chapter by the name of its file: chapters count on over the numbered parts.

    >>> import tempfile
    >>> toc = Path(tempfile.mkdtemp()) / "_toc.yml"
    >>> _ = toc.write_text("parts: [{numbered: true, chapters: [{file: book/a}]}, {chapters: [{file: book/quiz}]}]")
    >>> chapter_numbers(toc)
    {'a': 1}
    """
    parts = yaml.safe_load(toc.read_text(encoding="utf-8")).get("parts", [])
    files = [entry["file"] for part in parts if part.get("numbered") for entry in part["chapters"]]
    return {Path(file).name: number for number, file in enumerate(files, start=1)}


class ChapterRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        toc = Path(self.env.srcdir) / "_toc.yml"
        self.env.note_dependency(str(toc))
        numbers = chapter_numbers(toc)
        if self.text not in numbers:
            message = f"there is no chapter {self.text!r}; _toc.yml numbers: {', '.join(numbers)}"
            error = self.inliner.reporter.error(message, line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, error)], [error]
        # Roles are found whatever their case: only the text as written tells {Chapter} from {chapter}.
        word = "" if self.name.endswith("number") else "Chapter\N{NO-BREAK SPACE}"
        word = word if self.rawtext.startswith(":C") else word.lower()
        link = addnodes.pending_xref(
            self.rawtext,
            nodes.inline("", f"{word}{numbers[self.text]}", classes=["std", "std-doc"]),
            refdomain="std",
            reftype="doc",
            refexplicit=True,
            refwarn=True,
            reftarget=f"/book/{self.text}",
            refdoc=self.env.docname,
        )
        return [link], []


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_role("chapter", ChapterRole())
    app.add_role("chapter-number", ChapterRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
