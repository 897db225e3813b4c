"""What real tables do, on rows of image segments with the defaults of `discover`: mixed, spoilt, full of oddities."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from ncdlib import discover, load_table

OPTIONS = {"n_seeds": 1, "verbose": False}


@pytest.fixture(scope="module")
def segment():
    X, y, truth = load_table("segment")
    return X.reset_index(drop=True), y.astype(object).reset_index(drop=True), truth.to_numpy()


@pytest.fixture(scope="module")
def clean(segment):
    return ari(discover(*segment[:2], **OPTIONS), segment)


def ari(found, segment):
    """Agreement with the truth on the rows of new classes, whatever they were given: a class, known or new, or none."""
    _, y, truth = segment
    new = y.isna().to_numpy()
    return adjusted_rand_score(truth[new], found.to_frame()["label"][new])


def notes_of(found):
    return " ".join(found.notes)


def test_clean(segment, clean):
    assert clean > 0.5


def test_30_percent_known_rows_among_the_unlabelled(segment, clean):
    X, y, _ = segment
    labeled = np.flatnonzero(y.notna())
    known = np.random.default_rng(0).choice(labeled, int(0.3 / 0.7 * y.isna().sum()), replace=False)
    mixed = y.copy()
    mixed[known] = None
    found = discover(X, mixed, **OPTIONS)
    assert found.recognised[known].mean() >= 0.9
    assert ari(found, segment) >= clean - 0.05


@pytest.mark.parametrize("seeds", [range(4), range(4, 20)])
def test_no_class_is_claimed_where_all_rows_are_known(segment, seeds):
    X, y, _ = segment
    X, y = X[y.notna()], y[y.notna()]
    claimed = 0
    for seed in seeds:
        hidden = np.random.default_rng(seed).choice(y.index, 300, replace=False)
        claimed += discover(X, y.where(~y.index.isin(hidden), None), random_state=seed, **OPTIONS).n_clusters > 0
    assert claimed <= len(seeds) // 16


def test_six_outliers(segment, clean):
    X, y, _ = segment
    rng = np.random.default_rng(0)
    rows = rng.choice(np.flatnonzero(y.isna()), 6, replace=False)
    far = X.astype(float)
    far.iloc[rows] += 50 * rng.choice([-1, 1], (6, X.shape[1])) * X.std().to_numpy()
    found = discover(far, y, **OPTIONS)
    assert (found.labels[rows] == -2).all() and "6 unlabelled rows are far from all others" in notes_of(found)
    assert ari(found, segment) >= clean - 0.05


def with_sentinel(X, y, rng):
    column = X["hue-mean"].where(rng.random(len(X)) > 0.02, -99999.0)
    return X.assign(**{"hue-mean": column}), y, "'hue-mean'"


def with_id(X, y, rng):
    return X.assign(number=rng.permutation(10**6)[: len(X)]), y, "'number'"


def with_timestamp(X, y, rng):
    seconds = 1_700_000_000 + rng.integers(10**6, size=len(X)) + 10**6 * y.isna().to_numpy()
    return X.assign(ts=seconds), y, "'ts'"


@pytest.mark.parametrize("spoil", [with_sentinel, with_id, with_timestamp])
def test_told_by_name_and_harmless(segment, clean, spoil):
    X, y, name = spoil(*segment[:2], np.random.default_rng(0))
    found = discover(X, y, **OPTIONS)
    assert name in notes_of(found)
    assert not any("ts" in profile.rule.split() or "number" in profile.rule.split() for profile in found.profiles)
    assert ari(found, segment) >= clean - 0.05


def wrong_labels(X, y, rng):
    wrong = rng.choice(np.flatnonzero(y.notna()), int(0.03 * y.notna().sum()), replace=False)
    y = y.copy()
    y[wrong] = rng.permutation(y[wrong].to_numpy())
    return X, y


def missing_cells(X, y, rng):
    return X.mask(pd.DataFrame(rng.random(X.shape) < 0.2, X.index, X.columns)), y


@pytest.mark.parametrize("spoil", [wrong_labels, missing_cells])
def test_harmless(segment, clean, spoil):
    found = discover(*spoil(*segment[:2], np.random.default_rng(0)), **OPTIONS)
    assert ari(found, segment) >= clean - 0.1
