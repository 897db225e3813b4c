"""The sources of the book: chapters as the contribution guide asks for, and builds that notice what they depend on."""

import ast
import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from conftest import ROOT, chapters_of
from docutils import nodes
from docutils.utils import new_document
from IPython.core.inputtransformer2 import TransformerManager

import ncdlib
from ncdlib import DATASETS, load_dataset


def shows_progress(value: object) -> bool:
    verbose = callable(value) and inspect.signature(value).parameters.get("verbose")
    return bool(verbose) and verbose.default is True


TRAINING = {name for name in ncdlib.__all__ if shows_progress(getattr(ncdlib, name))}
CHAPTERS = [ROOT / "book" / f"{name}.ipynb" for name in chapters_of()]


def cells(chapter: Path) -> list[dict]:
    return json.loads(chapter.read_text(encoding="utf-8"))["cells"]


def python(cell: dict) -> str:
    """The code of a cell, with IPython's own syntax turned into calls."""
    return TransformerManager().transform_cell("".join(cell["source"]))


def prose(chapter: Path) -> str:
    return "\n\n".join("".join(c["source"]) for c in cells(chapter) if c["cell_type"] == "markdown")


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request) -> Path:
    return request.param


TABLE_MAKERS = {"DataFrame", "to_frame", "describe", "head", "groupby", "iloc", "corr", "rerun", "render_table"}


def test_every_page_is_in_the_table_of_contents():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = set(re.findall(r"'file': '([^']+)'", str(toc)))
    pages = {f"book/{path.stem}" for path in (ROOT / "book").glob("*") if path.suffix in (".md", ".ipynb")}
    assert {page for page in listed if page.startswith("book/")} == pages


def test_no_outputs_are_stored(chapter):
    for cell in cells(chapter):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, cell["id"]


def test_cell_ids_are_names_and_unique(chapter):
    ids = [cell["id"] for cell in cells(chapter)]
    assert len(set(ids)) == len(ids), sorted(i for i in ids if ids.count(i) > 1)


def test_chapter_has_every_part(chapter):
    text = prose(chapter)
    for part in (
        "```{chapter-times}",
        "What you will learn",
        "## Common mistakes",
        "## Take-away",
        "## Exercises",
        "## Further reading",
        "{cite",
    ):
        assert part in text, f"{chapter.name} has no {part!r}"
    code = "\n".join("".join(c["source"]) for c in cells(chapter) if c["cell_type"] == "code")
    live = r'load_(dataset|table)\("(?!human|census)|load_digits\('
    assert re.search(live, code), f"{chapter.name} has nothing live on data on board"
    if chapter.stem in chapters_of("Evidence"):
        assert "\nrerun(" in code, f"{chapter.name} measures no row again"
    exercises = re.findall(r"{exercise}[^\n]*\n:label: (\S+)", text)
    assert len(exercises) >= 2
    assert exercises == re.findall(r"{solution-start} (\S+)", text)
    assert text.count("{solution-end}") == len(exercises)
    assert text.count(":class: dropdown") == len(exercises)


def test_first_code_cell_fetches_the_package_where_it_is_missing(chapter):
    first = next(cell for cell in cells(chapter) if cell["cell_type"] == "code")
    assert 'find_spec("ncdlib") is None' in "".join(first["source"])
    assert "remove-cell" in first["metadata"]["tags"]


def test_every_shown_cell_follows_a_sentence(chapter):
    """One idea a cell: two shown cells never follow each other without prose."""
    previous = "markdown"
    for cell in cells(chapter):
        tags = cell["metadata"].get("tags", [])
        if "remove-cell" in tags:
            continue
        if cell["cell_type"] == "code":
            assert previous == "markdown", f"{chapter.name}: no prose before cell {cell['id']}"
        previous = cell["cell_type"]


LONGEST_CELL = 17


def code_cells(chapter: Path, *, without: tuple[str, ...] = ()) -> list[dict]:
    found = [cell for cell in cells(chapter) if cell["cell_type"] == "code"]
    return [cell for cell in found if not set(without) & set(cell["metadata"].get("tags", []))]


def test_the_cell_that_imports_is_folded(chapter):
    imports = code_cells(chapter, without=("remove-cell",))[0]
    assert imports["id"] == "imports" and "plots.set_style()" in "".join(imports["source"])
    assert "hide-input" in imports["metadata"].get("tags", [])


def test_cells_to_read_are_short(chapter):
    shown = code_cells(chapter, without=("hide-input", "remove-cell"))
    lines = {cell["id"]: "".join(cell["source"]).count("\n") + 1 for cell in shown}
    assert max(lines.values()) <= LONGEST_CELL, {name: n for name, n in lines.items() if n > LONGEST_CELL}


def test_numbers_are_glued_all_at_once(chapter):
    nodes_of = {cell["id"]: list(ast.walk(ast.parse(python(cell)))) for cell in code_cells(chapter)}
    named = {name: {node.id for node in found if isinstance(node, ast.Name)} for name, found in nodes_of.items()}
    assert not [name for name, names in named.items() if "glue" in names]
    assert any("glue_all" in names for names in named.values())


def test_no_chapter_number_is_typed(chapter):
    """`_toc.yml` alone numbers chapters: a page names them with the role {chapter}."""
    text = "\n".join("".join(cell["source"]) + str(cell["metadata"]) for cell in cells(chapter))
    assert not re.findall(r"[Cc]hapters?\s+\d+", text)


def test_figures_and_tables_have_names_captions_and_alt_texts(chapter):
    topic = chapter.stem.replace("_", "-")
    for cell in cells(chapter):
        code, options = "".join(cell["source"]), cell["metadata"].get("mystnb", {})
        if figure := options.get("figure"):
            assert re.fullmatch(rf"(fig|tab)-{topic}-[a-z0-9-]+", figure["name"]), figure["name"]
            assert figure["caption"].rstrip(")").endswith((".", "?", "!")), (
                f"caption of {figure['name']} is not a sentence"
            )
            if figure["name"].startswith("fig-") and "show_plotly" not in code:
                assert options["image"]["alt"].endswith("."), f"{figure['name']} has no alt text"
            if figure["name"].startswith("tab-"):
                assert figure["caption_before"], f"the caption of {figure['name']} goes above the table"
        elif cell["cell_type"] == "code":
            assert not re.search(r"plt\.|plots\.(plot|show)_", code), f"cell {cell['id']} draws without a caption"
            shown = ast.parse(python(cell)).body[-1:]
            aside = cell["id"].startswith("solution") or "remove-cell" in cell["metadata"].get("tags", [])
            if shown and isinstance(shown[0], ast.Expr) and not aside:
                made = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(shown[0])}
                assert not made & TABLE_MAKERS, f"cell {cell['id']} shows a table without a caption"


def test_nothing_trains_with_a_progress_bar(chapter):
    """It would write on standard error, but only on a slow machine: a build that fails now and then."""
    for cell in cells(chapter):
        if cell["cell_type"] == "code":
            for call in (node for node in ast.walk(ast.parse(python(cell))) if isinstance(node, ast.Call)):
                if getattr(call.func, "id", None) in TRAINING:
                    names = {keyword.arg for keyword in call.keywords}
                    assert names & {"verbose", None}, f"{cell['id']}: {call.func.id} without verbose=False"


@pytest.mark.needs_data(*(name for name, info in DATASETS.items() if info.files))
def test_table_of_data_sets_is_what_the_loader_gives():
    counted = pd.DataFrame([load_dataset(name).describe() for name in DATASETS])
    stored = pd.read_csv(ROOT / "results" / "datasets.csv", index_col="name")
    pd.testing.assert_frame_equal(stored, counted.infer_objects(), check_names=False)


def test_readme_shows_the_table_of_data_sets():
    readme = (ROOT / "README.md").read_text()
    columns = ["features", "known classes", "known rows", "novel classes", "novel rows", "novel test rows"]
    stored = pd.read_csv(ROOT / "results" / "datasets.csv", index_col="name")
    for name, counts in stored[columns].iterrows():
        variants = {note for file in DATASETS[name].files for note in file.variants.values()}
        star = "*" if stored.loc[name, "source"] in variants else ""
        assert f"| {name}{star} | {' | '.join(map(str, counts))} |" in readme


@pytest.fixture(scope="module")
def extension():
    spec = importlib.util.spec_from_file_location("ncdbook", ROOT / "book" / "_ext" / "ncdbook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("changed", ["ncdlib/methods/new.py", "results/runs.csv"])
def test_fingerprint_sees_package_and_results(extension, tmp_path, monkeypatch, changed):
    monkeypatch.setattr(extension, "__file__", str(tmp_path / "ncdbook.py"))
    before = extension.fingerprint(tmp_path)
    path = tmp_path / changed
    path.parent.mkdir(parents=True)
    path.write_text("x = 1\n")
    first = extension.fingerprint(tmp_path)
    path.write_text("x = 2\n")
    assert len({before, first, extension.fingerprint(tmp_path)}) == 3


def test_fingerprint_sees_the_environment(extension, tmp_path, monkeypatch):
    monkeypatch.setattr(extension, "__file__", str(tmp_path / "ncdbook.py"))
    before = extension.fingerprint(tmp_path)
    monkeypatch.setattr(extension, "distributions", lambda: [])
    assert extension.fingerprint(tmp_path) != before


def test_no_line_ends_within_what_belongs_together(extension):
    words = nodes.Text("By Chapter 7 and Table 3.1, 96 % of "), nodes.math("k", "k"), nodes.Text("-means rows; ")
    document = new_document("page")
    document += nodes.paragraph("", "", *words, nodes.literal("", "a % b"))
    extension.keep_together(None, document, "page")
    assert document.astext() == "By Chapter\xa07 and Table\xa03.1, 96\xa0% of k-means rows; a % b"
    (together,) = document.findall(nodes.inline)
    assert together.astext() == "k-means" and together["classes"] == ["nowrap"]


@pytest.fixture
def small_book(tmp_path):
    """A book with one short chapter that shows a number of a package beside it, built as the real one is."""
    (tmp_path / "book").mkdir()
    shutil.copytree(ROOT / "book" / "_ext", tmp_path / "book" / "_ext")
    shutil.copytree(ROOT / "book" / "_static", tmp_path / "book" / "_static")
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    (tmp_path / "_config.yml").write_text(yaml.safe_dump(config))
    (tmp_path / "book" / "references.bib").write_text("")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: index\nchapters:\n  - file: book/page\n")
    (tmp_path / "index.md").write_text("# Index\n")
    (tmp_path / "ncdlib").mkdir()
    (tmp_path / "ncdlib" / "answer.py").write_text("ANSWER = 4711\n")

    def build(code: str, text: str = "Text.") -> subprocess.CompletedProcess:
        code_cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": code, "outputs": []}
        code_cell["execution_count"] = None
        text_cell = {"cell_type": "markdown", "id": "t", "metadata": {}, "source": f"# Page\n\n{text}"}
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        notebook = {"cells": [text_cell, code_cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
        (tmp_path / "book" / "page.ipynb").write_text(json.dumps(notebook))
        command = [Path(sys.executable).with_name("jupyter-book"), "build", tmp_path, "-W", "-n", "--keep-going"]
        return subprocess.run(command, capture_output=True, text=True)

    build.page = tmp_path / "_build" / "html" / "book" / "page.html"
    build.module = tmp_path / "ncdlib" / "answer.py"
    return build


READ_ANSWER = "import runpy\nrunpy.run_path('../ncdlib/answer.py')['ANSWER']"


def test_build_shows_new_numbers_after_the_package_changed(small_book):
    assert small_book(READ_ANSWER).returncode == 0
    assert "4711" in small_book.page.read_text()
    small_book.module.write_text("ANSWER = 4712\n")
    assert small_book(READ_ANSWER).returncode == 0
    assert "4712" in small_book.page.read_text()


def test_build_fails_on_a_failing_cell_and_on_every_warning_again(small_book):
    assert small_book("1 / 0").returncode != 0
    for _ in range(2):  # the second build has nothing left to read, but must not pass for that
        done = small_book("1", "See {ref}`nowhere`.")
        assert done.returncode != 0
        assert "nowhere" in done.stderr
    assert small_book("import warnings\nwarnings.warn('careful')").returncode != 0
    assert small_book("1").returncode == 0
