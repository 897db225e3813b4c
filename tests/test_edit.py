"""The person in the loop: classes are renamed, merged, split and accepted, all of it in a log, and undone."""

import numpy as np
import pandas as pd
import pytest
from own_tables import EVIL, run_discover, write_csv
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

from ncdlib import discover, load, make_ncd_blobs
from ncdlib.cli import app
from ncdlib.own_data.examples import examples


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=0)


@pytest.fixture(scope="module")
def found(problem):
    return discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)


def names(found):
    return [profile.name for profile in found.profiles]


def test_an_edit_returns_another_discovery(found):
    renamed = found.rename("new 1", EVIL)
    assert names(renamed) == [EVIL, "new 2", "new 3"] and names(found) == ["new 1", "new 2", "new 3"]
    assert (renamed.to_frame()["label"] == EVIL).sum() == found.profiles[0].size
    assert renamed.summary()["class"][0] == EVIL
    assert EVIL in set(renamed.apply(renamed.preprocessor.readable(renamed.numbers))["label"])
    assert renamed.log()["edit"].tolist() == [f"rename 'new 1' as {EVIL!r}"] and len(found.log()) == 0


def test_merge_and_split_find_the_classes_again(problem, found):
    merged = found.merge("new 1", "new 3", name="both")
    assert names(merged) == ["both", "new 2"] and merged.n_clusters == 2
    both = merged.profiles[0]
    assert both.size == found.profiles[0].size + found.profiles[2].size and np.isnan(both.stability)
    assert merged.profiles[1] == found.profiles[1]
    split = merged.split("both")
    assert sorted(names(split)) == ["both.1", "both.2", "new 2"]
    novel = problem.y == -1
    assert adjusted_rand_score(split.labels[novel], found.labels[novel]) > 0.95
    assert sum(profile.size for profile in split.profiles) == novel.sum()
    again = found.split("new 1", 4)
    assert [again.profiles[i].size for i in range(4) if names(again)[i].startswith("new 1.")] != []
    assert again.n_clusters == 6


def test_merged_with_a_known_class_rows_are_its_own(found):
    known = str(found.known[~found.unlabeled][0])
    merged = found.merge("new 2", known)
    rows = found.labels == 1
    assert (merged.to_frame()["label"][rows] == known).all() and not merged.to_frame()["discovered"][rows].any()
    assert names(merged) == ["new 1", "new 3"] and merged.n_clusters == 2
    assert set(merged.next_labels()[rows]) == {found.known[~found.unlabeled][0]}


def test_the_next_round_takes_what_was_accepted(problem, found):
    accepted = found.accept("new 1", "stains").accept("new 2")
    labels = accepted.next_labels()
    assert (labels[found.labels == 0] == "stains").all() and (labels[found.labels == 1] == "new 2").all()
    assert pd.isna(labels[found.labels == 2]).all()
    second = discover(problem.X, labels, method="ncd_kmeans", n_clusters=1, verbose=False)
    assert names(second) == ["new 3"] and second.profiles[0].size == found.profiles[2].size
    applied = accepted.apply(problem.X)
    assert not applied["discovered"][applied["label"] == "stains"].any()
    nothing_left = accepted.accept("new 3")
    assert nothing_left.n_clusters == 0 and (nothing_left.apply(problem.X)["label"] == "new 3").sum() > 60


def test_undo_goes_back_step_by_step_and_the_log_keeps_all(found, tmp_path):
    steps = [found, found.rename("new 1", "a"), found.rename("new 1", "a").split("a")]
    last = load(steps[2].save(tmp_path / "r.npz"))  # what is saved can be undone as well
    for before in (steps[1], steps[0]):
        last = load(last.undo().save(tmp_path / "r.npz"))
        pd.testing.assert_frame_equal(last.to_frame(), before.to_frame())
        pd.testing.assert_frame_equal(last.summary(), before.summary())
    assert last.log()["edit"].tolist() == ["rename 'new 1' as 'a'", "split 'a' into 2", "undo", "undo"]
    with pytest.raises(ValueError, match="no edit to undo"):
        last.undo()
    assert names(last.rename("new 2", "b").undo()) == names(found)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda found: found.rename("new 9", "x"), "no discovered class 'new 9': there is new 1, new 2, new 3"),
        (lambda found: found.rename("new 1", "new 2"), "a class 'new 2' already: to make one of them, use merge"),
        (lambda found: found.rename("new 1", "0"), "a class '0' already"),
        (lambda found: found.rename("new 1", "neither"), "cannot be named 'neither'"),
        (lambda found: found.rename("new 1", " "), "cannot be named ' '"),
        (lambda found: found.merge("new 1"), "merge takes two classes or more"),
        (lambda found: found.merge("new 1", "new 1"), "merge takes two classes or more"),
        (lambda found: found.merge("new 1", "0", "1"), "are both known"),
        (lambda found: found.merge("new 1", "0", name="x"), "leave the new one out"),
        (lambda found: found.split("new 1", 1), "can be split into 2 to 70 classes, not into 1"),
        (lambda found: found.accept("new 1", "0"), "a class '0' already"),
        (lambda found: found.accept("0"), "no discovered class '0'"),
    ],
)
def test_what_cannot_be_done_is_refused(found, edit, message):
    with pytest.raises(ValueError, match=message):
        edit(found)


def test_the_report_shows_rows_and_edits(found, tmp_path):
    page = found.split("new 2").rename("new 1", EVIL).report(tmp_path / "page.html").read_text()
    assert page.count("<td>typical</td>") == page.count("<td>borderline</td>") == 3 * 4
    assert "split &#x27;new 2&#x27; into 2" in page and "<script>" not in page and "nan" not in page
    typical, borderline = examples(found, found.profiles[0])
    mean = found.numbers[found.labels == 0].mean(axis=0)
    far = [np.linalg.norm(found.numbers[rows] - mean, axis=1).mean() for rows in (typical, borderline)]
    assert far[0] < far[1]


def ncd_edit(*arguments):
    return CliRunner().invoke(app, ["edit", *map(str, arguments)])


def test_command_line(tmp_path):
    table, result = write_csv(tmp_path / "mine.csv", n_rows=300), tmp_path / "r.npz"
    assert run_discover(table, "--save", result).exit_code == 0
    assert "Stains" in ncd_edit(result, "rename", "new 1", "Stains").output
    assert "both" in ncd_edit(result, "merge", "Stains", "new 2", "--name", "both").output
    assert "Stains" in ncd_edit(result, "undo").output
    assert ncd_edit(result, "accept", "Stains").exit_code == 0
    log = ncd_edit(result, "log").output.splitlines()
    assert [line.split("  ")[1] for line in log] == [
        "rename 'new 1' as 'Stains'",
        "merge 'Stains', 'new 2' as 'both'",
        "undo",
        "accept 'Stains'",
    ]
    second = run_discover(table, "--after", result, "--clusters", "1")
    assert "50 unlabelled rows; known classes: a (100), b (100), Stains (50)" in second.output, second.output
    assert ncd_edit(result, "report", "-o", tmp_path / "page.html").exit_code == 0
    assert "Stains" in (tmp_path / "page.html").read_text()
    for arguments, message in (
        (["renam", "a"], "unknown edit 'renam'"),
        (["rename", "new 2"], "the old name and the new one"),
        (["report"], "report needs --output"),
        (["undo", "new 2"], "undo takes no class"),
        (["accept", "new 2", "--pieces", "2"], "--pieces is for split"),
    ):
        assert message in str(ncd_edit(result, *arguments).exception)
    other = write_csv(tmp_path / "other.csv", n_rows=90)
    assert "has 90 rows, and the earlier result is of 300" in str(run_discover(other, "--after", result).exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.csv", "other.csv", "page.html", "r.npz"]
