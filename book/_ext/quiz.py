"""``{quiz} name``: the questions of ``book/_quiz/name.json``, each with its options and its explained answer.

The page holds plain lists and a ``<details>`` for each answer, which work without a script; ``quiz.js`` turns the
options into buttons.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

QUIZ_FOLDER = Path(__file__).parents[1] / "_quiz"
KEYS = {"question", "options", "answer", "explanation"}


def read_quiz(path: Path) -> list[dict[str, Any]]:
    """Read the questions of a file; a ValueError says which one is not in order.

    Each question has "question", "options" (a list of texts, all different), "answer" (the position of the right one,
    from 0) and "explanation". The texts are MyST Markdown.
    """
    questions = json.loads(path.read_text(encoding="utf-8"))
    for number, question in enumerate(questions, start=1):
        where = f"{path.name}, question {number}"
        if set(question) != KEYS:
            raise ValueError(f"{where}: needs exactly the keys {', '.join(sorted(KEYS))}")
        n_options = len(question["options"])
        if n_options < 2 or len(set(question["options"])) < n_options:
            raise ValueError(f"{where}: needs two options or more, all different")
        if not isinstance(question["answer"], int) or not 0 <= question["answer"] < n_options:
            raise ValueError(f"{where}: the answer is the position of an option, from 0 to {n_options - 1}")
    return questions


class Quiz(Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = QUIZ_FOLDER / f"{self.arguments[0]}.json"
        env = self.state.document.settings.env
        for source in (path, Path(__file__)):
            env.note_dependency(str(source))
        try:
            questions = read_quiz(path)
        except (OSError, ValueError) as error:
            raise self.error(str(error)) from error
        asked = [self._question(question) for question in questions]
        return [
            nodes.enumerated_list(
                "",
                *asked,
                classes=["quiz"],
                enumtype="arabic",
                prefix="",
                suffix=".",
            )
        ]

    def _question(self, question: dict[str, Any]) -> nodes.list_item:
        options = nodes.enumerated_list(
            "",
            classes=["quiz-options"],
            enumtype="upperalpha",
            prefix="",
            suffix=".",
        )
        for position, text in enumerate(question["options"]):
            right = ["quiz-right"] if position == question["answer"] else []
            options += nodes.list_item("", *self._parse(text), classes=right)
        letter = chr(ord("A") + question["answer"])
        return nodes.list_item(
            "",
            *self._parse(question["question"]),
            options,
            nodes.raw(
                "",
                '<details class="quiz-answer"><summary>Show the answer</summary>',
                format="html",
            ),
            nodes.paragraph("", f"The answer is {letter}.", classes=["quiz-letter"]),
            *self._parse(question["explanation"]),
            nodes.raw("", "</details>", format="html"),
        )

    def _parse(self, text: str) -> list[nodes.Node]:
        parent = nodes.Element()
        self.state.nested_parse(
            StringList(text.splitlines(), self.arguments[0]),
            self.content_offset,
            parent,
        )
        return parent.children


def add_script(
    app: Sphinx,
    page: str,
    template: str,
    context: dict[str, Any],
    doctree: Any,
) -> None:
    """Load script and style on the pages that have a quiz."""
    if 'class="quiz-answer"' in context.get("body", ""):
        app.add_js_file("quiz.js", loading_method="defer")
        app.add_css_file("quiz.css")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("quiz", Quiz)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
