"""The report and the figures of a discovery."""

import os
from html.parser import HTMLParser

import matplotlib
import pandas as pd
import pytest
from own_tables import odd_table, run_discover, write_csv

from ncdlib import discover, make_ncd_blobs
from ncdlib.own_data.explain import Difference
from ncdlib.own_data.report import _means


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=0)


@pytest.fixture(scope="module")
def table(problem):
    return odd_table(problem)


@pytest.fixture(scope="module")
def found(table):
    return discover(*table, method="ncd_kmeans", verbose=False)


def test_means_are_written_with_the_digits_that_matter():
    assert _means(Difference("year", 2016.83, 2011.91, 1.6)) == ("2016.8", "2011.9")
    assert _means(Difference("amount", 12951.3, 1033.2, 1.5)) == ("12,951", "1,033")
    assert _means(Difference("colour is red", 0.931, 0.04, 2.0)) == ("0.93", "0.04")
    assert _means(Difference("tiny", 2e-12, 1e-12, 1.0)) == ("2e-12", "1e-12")
    assert _means(Difference("same", 5.0, 5.0, 0.0)) == ("5", "5")


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.links = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]


def test_report_is_one_page_that_executes_nothing(found, tmp_path):
    path = found.report(tmp_path / "report.html")
    html = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(html)
    assert "script" not in tags.seen and "link" not in tags.seen
    assert all(link.startswith("data:image/png;base64,") for link in tags.links) and len(tags.links) == 1
    assert "&lt;script&gt;alert(" in html and "<script>" not in html
    assert "http://" not in html and "https://" not in html
    for p in found.profiles:
        assert f">{p.name}<" in html
    assert "default-src 'none'" in html
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_table_of_one_column(problem, tmp_path):
    found = discover(problem.X[:, :1], problem.y, method="ncd_kmeans", n_clusters=2, verbose=False)
    html = found.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "feature 0" in html and set(found.labels) == {-1, 0, 1}


def test_plot_draws_three_panels(found):
    with matplotlib.rc_context({"axes.titlelocation": "center"}):  # whatever style was set before
        figure = found.plot()
    figure.canvas.draw()  # names with a dollar sign are no mathematics
    titles = [ax.get_title() for ax in figure.axes[:3]]
    assert titles[0] == "How many classes?" and "sets each class apart" in titles[2]
    matplotlib.pyplot.close(figure)


def test_a_column_named_script(tmp_path):
    """Nor does a class, or a column that a note tells of, become a part of the page."""
    path, report = write_csv(tmp_path / "t.csv", "<script>alert(1)</script>,y,class"), tmp_path / "report.html"
    table = pd.read_csv(path)
    table.assign(**{"class": "<script>" + table["class"], "<script>same": 1}).to_csv(path, index=False)
    done = run_discover(path, "--report", report)
    assert done.exit_code == 0, done.output
    html = report.read_text(encoding="utf-8")
    assert "<script" not in html
    for text in ("&lt;script&gt;alert(1)&lt;/script&gt;", "<strong>&lt;script&gt;", "&lt;script&gt;same"):
        assert text in html
