"""Whether "90 % sure" means nine in ten: confidence against the truth, on many tables and novel classes.

``python -m ncdlib.evidence.confidence`` measures what is not in ``results/confidence.csv`` yet, and writes the
coefficients of `ncdlib.own_data.confidence` from all of it. The novel classes are a random half, not the paper's.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from tqdm import tqdm

import ncdlib
from ncdlib._io.files import atomic_write
from ncdlib._io.row_store import RowStore
from ncdlib.datasets import load_dataset
from ncdlib.evidence.results import results_folder
from ncdlib.own_data.confidence import COEFFICIENTS, SIGNS, apply_map, signs_of_classes, signs_of_table
from ncdlib.problem import UNLABELED
from ncdlib.selection.portfolio import MetricNCD

TABLES = ("segment", "digits", "vowel", "steel", "mfeat", "optdigits", "pendigits", "vehicle", "letter", "cnae9")
N_SPLITS = 6
MAX_ROWS = 4_000  # of a table: a random sample of larger ones
RIGHT = 0.8  # F1 score of a class, adjusted Rand index of a partition
PENALTY = 3e-4  # on the squared weights
KEY = ("of", "table", "split", "cluster")


def measure(table: str, split: int) -> pd.DataFrame:
    """Return a row for the partition of a table, and one for each discovered class: what speaks for it, and the truth.

    Half of the classes are novel, a random half that `split` chooses.
    """
    problem = load_dataset(table)
    rng = np.random.default_rng(split)
    kept = np.sort(rng.permutation(len(problem.X))[:MAX_ROWS])
    X, truth = problem.X[kept], problem.y_true[kept]
    classes = np.unique(truth)
    novel = rng.permutation(classes)[: len(classes) // 2]
    unlabeled = np.isin(truth, novel)
    model = MetricNCD(random_state=split).fit(X, np.where(unlabeled, UNLABELED, truth))
    labels, truth = model.labels_[unlabeled], truth[unlabeled]
    shared = contingency_matrix(truth, labels)
    f1 = 2 * shared / (shared.sum(axis=1, keepdims=True) + shared.sum(axis=0))
    by_class = signs_of_classes(model).iloc[np.unique(labels)]
    by_class = by_class.assign(of="class", cluster=np.unique(labels), score=f1.max(axis=0))
    whole = signs_of_table(model).assign(of="table", cluster=UNLABELED, score=adjusted_rand_score(truth, labels))
    counts = {"n_rows": len(labels), "k": model.n_clusters_, "true_k": len(novel)}
    return pd.concat([whole, by_class]).assign(table=table, split=split, **counts, ncdlib=ncdlib.__version__)


def load_confidence(folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return all that was measured: a row for each partition (``of == "table"``) and for each class (``"class"``).

    Examples
    --------
    >>> from ncdlib.evidence import load_confidence
    >>> sorted(load_confidence()["of"].unique())
    ['class', 'table']
    """
    return _store(folder).rows()


def reliability(of: str = "class", folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return how sure we would have been of each class on board, or of each partition, and whether it was right.

    The confidence comes from a map that was fitted without the table. The columns are "table", "split", "confidence",
    "score" (F1 or adjusted Rand index) and "right".

    Parameters
    ----------
    of : {"class", "table"}, default="class"
    folder : path or None
        Of the measurements; see `results_folder`.

    Examples
    --------
    >>> from ncdlib.evidence.confidence import reliability
    >>> classes = reliability()
    >>> sure = classes[classes["confidence"] > 0.9]
    >>> bool(sure["right"].mean() > classes["right"].mean())
    True
    """
    rows = load_confidence(folder).query("of == @of").reset_index(drop=True)
    rows["confidence"] = np.nan
    for table in rows["table"].unique():
        here = rows["table"] == table
        rows.loc[here, "confidence"] = apply_map(rows[here], fit_map(rows[~here]))
    rows["right"] = rows["score"] >= RIGHT
    return rows[["table", "split", "confidence", "score", "right"]]


def fit_map(rows: pd.DataFrame) -> pd.Series:
    """Fit a logistic map from the signs to "right" that never falls as a sign rises; each table has the same weight."""
    usual = rows[SIGNS].mean()
    X = np.column_stack([np.ones(len(rows)), rows[SIGNS].fillna(usual).to_numpy(dtype=float)])
    sign = np.where(rows["score"] >= RIGHT, 1, -1)
    weight = (1 / rows.groupby("table")["table"].transform("size")).to_numpy() / rows["table"].nunique()

    def loss(w: np.ndarray) -> float:
        return float(weight @ np.logaddexp(0, -sign * (X @ w)) + PENALTY * np.sum(w[1:] ** 2))

    bounds = [(None, None)] + [(0, None)] * len(SIGNS)
    w = minimize(loss, np.zeros(1 + len(SIGNS)), bounds=bounds, method="L-BFGS-B").x
    return pd.Series({"intercept": w[0], **dict(zip(SIGNS, w[1:], strict=True)), **usual.add_prefix("usual_")})


def write_coefficients(folder: str | os.PathLike | None = None) -> None:
    """Write the coefficients that `ncdlib.own_data.confidence` reads, from all tables measured."""
    rows = load_confidence(folder)
    lines = {of: fit_map(some) for of, some in rows.groupby("of")}
    with atomic_write(COEFFICIENTS) as file:
        pd.DataFrame(lines).T.rename_axis("of").round(4).to_csv(file)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and write the coefficients."""
    parser = argparse.ArgumentParser(prog="python -m ncdlib.evidence.confidence", description=main.__doc__)
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="choices of the novel classes of each table")
    parser.add_argument("--tables", nargs="*", default=TABLES, choices=TABLES)
    options = parser.parse_args(arguments)
    store = _store()
    done = set(zip(*store.rows()[["table", "split"]].to_numpy().T, strict=True)) if store.path.exists() else set()
    units = [(table, split) for split in range(options.splits) for table in options.tables]
    for table, split in tqdm([unit for unit in units if unit not in done], desc="confidence"):
        for row in measure(table, split).to_dict("records"):
            store.append(row)
    write_coefficients()


def _store(folder: str | os.PathLike | None = None) -> RowStore:
    return RowStore(results_folder(folder) / "confidence.csv", KEY)


if __name__ == "__main__":
    main()
