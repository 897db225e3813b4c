"""Tables that the tests of `ncdlib.discover` share, and a check that an error is clear."""

import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn.utils
from typer.testing import CliRunner

import ncdlib
from ncdlib.cli import app

EVIL = "<script>alert('x')</script> & $x"
OURS = Path(ncdlib.__file__).parent
VALIDATION = Path(sklearn.utils.__file__).parent


def attempt(call):
    """Return (what the call returns, None), or (None, its message) where it refuses its input; fail if it is unclear.

    The error must be raised by the package, or by the part of scikit-learn that the package hands its input to for
    validation: the message of anything deeper is about something that the caller has never seen.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = call(), None
        except (ValueError, TypeError) as error:
            frames = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
            while frames[-1].is_relative_to(VALIDATION):
                frames.pop()
            assert frames[-1].is_relative_to(OURS), f"{error!r} comes from {frames[-1]}"
            outcome = None, str(error)
    leaked = {f"{w.filename}:{w.lineno}: {w.message}" for w in caught if issubclass(w.category, RuntimeWarning)}
    assert not leaked, leaked
    return outcome


def odd_table(problem):
    """Numbers, categories, flags, missing values; class names with characters that HTML and matplotlib would read."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(problem.X, columns=[f"x{i}" for i in range(problem.X.shape[1])])
    first = problem.y_true == problem.novel_classes[0]
    X["colour"] = pd.Categorical(np.where(first, "red", rng.choice(["blue", EVIL], len(X))))
    X["flag"] = X["x2"] > 0
    X["whole"] = X["x1"].round().astype("Int64")
    X["same"] = 7
    X["nothing"] = np.nan
    X.loc[rng.random(len(X)) < 0.1, ["x0", "colour", "whole"]] = None
    X.index = [f"row {i}" for i in range(len(X))]
    names = np.array([EVIL, "B", "C", "D", "?"], dtype=object)[problem.y]
    return X, np.where(problem.y == -1, None, names)


def write_csv(path, header="x,y,class", n_rows=90, sep=",", encoding="utf-8"):
    """Two known classes and two new ones, a third of the rows each."""
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0], [9, 9], [0, 9], [9, 0]])[rng.permutation(np.arange(n_rows) * 6 // n_rows % 4)]
    X = centers + rng.normal(size=(n_rows, 2))
    label = np.where((centers == 0).all(axis=1), "a", np.where((centers == 9).all(axis=1), "b", ""))
    lines = [sep.join([f"{row[0]:.3f}", f"{row[1]:.3f}", name]) for row, name in zip(X, label, strict=True)]
    path.write_bytes("\n".join([header.replace(",", sep), *lines, ""]).encode(encoding))
    return path


def run_discover(path, *arguments):
    options = ["discover", str(path), "--label-column", "class", "--method", "ncd_kmeans", *map(str, arguments)]
    return CliRunner().invoke(app, options)
