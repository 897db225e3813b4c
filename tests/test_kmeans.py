"""NCD k-means against scikit-learn's KMeans and plain loops."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances

from ncdlib import NCDKMeans, clustering_accuracy, load_dataset, make_ncd_blobs
from ncdlib.clustering.kernels import draw_centroids, k_means_from


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(n_features=5, n_samples=400, random_state=3)


def k_of(problem):
    return len(problem.novel_classes)


def test_finds_separate_novel_classes(problem):
    model = NCDKMeans(k_of(problem), random_state=0).fit(problem.X, problem.y)
    assert clustering_accuracy(problem.y_test_novel, model.predict(problem.X_test_novel)) > 0.95
    assert clustering_accuracy(problem.y_novel, model.labels_[problem.y == -1]) > 0.95
    assert (model.labels_[problem.y != -1] == -1).all()
    assert set(model.labels_[problem.y == -1]) == set(range(model.n_clusters_))


@pytest.mark.parametrize(("power", "far_share"), [(0, 1 / 2), (1, 3 / 4), (2, 9 / 10)])
def test_rows_are_drawn_in_proportion_to_a_power_of_the_distance(power, far_share):
    rows = np.array([[1.0], [-3.0]])  # at distance 1 and 3 from the known centroid
    rng = np.random.RandomState(0)
    drawn = draw_centroids(rows, 1, power=power, n_draws=20_000, rng=rng, known=np.array([[0.0]]))
    assert np.mean(drawn == -3) == pytest.approx(far_share, abs=0.01)


def test_draws_look_at_the_nearest_centroid_known_or_drawn():
    rng = np.random.RandomState(0)
    rows, known = rng.normal(size=(200, 3)), rng.normal(size=(4, 3))
    # To a high power, the farthest row is as good as certain: farthest-first traversal, done here by hand.
    centroids, expected = list(known), []
    for _ in range(6):
        farthest = rows[pairwise_distances(rows, centroids).min(axis=1).argmax()]
        centroids.append(farthest)
        expected.append(farthest)
    drawn = draw_centroids(rows, 6, power=500, n_draws=2, rng=rng, known=known)
    assert np.array_equal(drawn, [expected, expected])


@pytest.mark.parametrize("power", [0, 1, 2])
def test_no_row_is_drawn_twice_while_others_are_left(power):
    drawn = draw_centroids(np.arange(6.0)[:, None], 4, power=power, n_draws=500, rng=np.random.RandomState(0))
    assert all(len(np.unique(draw)) == 4 for draw in drawn)


def test_without_known_centroids_the_first_row_is_drawn_uniformly():
    rows = np.array([[0.0], [1.0], [100.0]])
    drawn = draw_centroids(rows, 2, power=1, n_draws=9000, rng=np.random.RandomState(0))
    assert np.bincount(np.searchsorted([0, 1, 100], drawn[:, 0, 0])) / 9000 == pytest.approx([1 / 3] * 3, abs=0.02)
    assert (drawn[:, 0] != drawn[:, 1]).all()


VARIANTS = [("novel", "unlabeled"), ("novel", "all"), ("known_and_novel", "all")]


@pytest.mark.parametrize(("update", "on"), VARIANTS)
def test_converges_where_scikit_learn_does(problem, update, on):
    model = NCDKMeans(k_of(problem), update=update, on=on, n_init=1, random_state=5).fit(problem.X, problem.y)
    known = np.array([problem.X[problem.y == c].mean(axis=0) for c in problem.known_classes])
    start = np.concatenate([known, model.initial_centers_]) if update == "known_and_novel" else model.initial_centers_
    rows = problem.X if on == "all" else problem.X_novel
    expected = KMeans(len(start), init=start, n_init=1).fit(rows).cluster_centers_
    assert model.initial_known_centers_ == pytest.approx(known)
    assert model.cluster_centers_ == pytest.approx(expected[-k_of(problem) :], abs=0.02)
    if update == "novel":
        assert np.array_equal(model.known_centers_, model.initial_known_centers_)
    else:
        assert model.known_centers_ == pytest.approx(expected[: len(known)], abs=0.02)
    nearest = pairwise_distances(problem.X_novel, model.cluster_centers_)
    assert np.array_equal(model.labels_[problem.y == -1], nearest.argmin(axis=1))
    assert model.inertia_ == pytest.approx((nearest.min(axis=1) ** 2).sum())


def test_the_variants_differ(problem):
    fitted = [NCDKMeans(3, update=u, on=o, random_state=0).fit(problem.X, problem.y) for u, o in VARIANTS]
    centers = [np.sort(model.cluster_centers_, axis=0) for model in fitted]
    assert not np.allclose(centers[0], centers[1])
    assert not np.allclose(centers[1], centers[2])


def test_known_centroids_can_not_converge_without_their_rows(problem):
    with pytest.raises(ValueError, match="needs on='all'"):
        NCDKMeans(3, update="known_and_novel").fit(problem.X, problem.y)


@pytest.mark.parametrize("selection", ["inertia", "distance"])
def test_the_best_start_is_kept(selection):
    X = np.random.RandomState(0).standard_t(2, size=(300, 3))  # outliers: the two selections disagree
    starts = draw_centroids(X, 4, power=1, n_draws=12, rng=np.random.RandomState(1))
    run, best = k_means_from(X, starts, selection=selection)
    runs = [KMeans(4, init=start, n_init=1).fit(X) for start in starts]
    distances = [np.linalg.norm(X - r.cluster_centers_[r.labels_], axis=1) for r in runs]
    scores = [np.sum(d**2 if selection == "inertia" else d) for d in distances]
    assert scores[best] == pytest.approx(min(scores), rel=1e-3)
    assert run.cluster_centers_ == pytest.approx(runs[best].cluster_centers_, abs=0.05)


def test_the_selections_disagree():
    X = np.random.RandomState(0).standard_t(2, size=(300, 3))
    starts = draw_centroids(X, 4, power=1, n_draws=12, rng=np.random.RandomState(1))
    assert k_means_from(X, starts, selection="inertia")[1] != k_means_from(X, starts, selection="distance")[1]


def test_more_initialisations_are_not_worse():
    problem = load_dataset("digits")
    inertia = [NCDKMeans(5, n_init=n, random_state=0).fit(problem.X, problem.y).inertia_ for n in (1, 10)]
    assert inertia[1] <= inertia[0]


def test_same_seed_same_result(problem):
    fits = [NCDKMeans(3, random_state=s, n_init=1).fit(problem.X, problem.y) for s in (0, 0, 1)]
    assert np.array_equal(fits[0].initial_centers_, fits[1].initial_centers_)
    assert np.array_equal(fits[0].labels_, fits[1].labels_)
    assert not np.array_equal(fits[0].initial_centers_, fits[2].initial_centers_)


@pytest.mark.parametrize(("scale", "shift"), [(1e-20, 0), (1e25, 0), (1, 1e8)])
def test_any_unit_and_origin_of_the_features(problem, scale, shift):
    plain = NCDKMeans(3, random_state=0).fit(problem.X, problem.y)
    moved = NCDKMeans(3, random_state=0).fit(problem.X * scale + shift, problem.y)
    assert np.array_equal(plain.labels_, moved.labels_)


def test_number_of_clusters_by_a_validity_index(problem):
    model = NCDKMeans("silhouette", random_state=0).fit(problem.X, problem.y)
    assert model.n_clusters_ == k_of(problem) == len(model.cluster_centers_)
    assert NCDKMeans("km_acc", random_state=0).fit(problem.X, problem.y).n_clusters_ >= 1
    with pytest.raises(ValueError, match="unknown validity index"):
        NCDKMeans("silouhette").fit(problem.X, problem.y)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("on", ["unlabeled", "all"])
def test_what_real_tables_have(on):
    X = np.zeros((20, 1))  # one feature, constant for all but few rows, a known class with one row
    X[:3, 0] = 1, 2, 3
    y = np.array([0, 1] + [-1] * 18)
    model = NCDKMeans(3, on=on, random_state=0).fit(X, y)
    assert model.labels_[2] != model.labels_[3]
    assert np.isfinite(model.cluster_centers_).all()
    as_many_as_rows = NCDKMeans(4, random_state=0).fit(np.arange(8.0).reshape(-1, 1), [0, 0, 1, 1, -1, -1, -1, -1])
    assert sorted(as_many_as_rows.labels_[4:]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        {"update": "all"},
        {"on": "labeled"},
        {"selection": "best"},
        {"n_init": 0},
        {"max_iter": 0},
        {"draw_power": -1},
        {"draw_power": "2"},
        {"n_clusters": 0},
        {"n_clusters": 10_000},
        {"n_clusters": 2.5},
    ],
)
def test_wrong_options(problem, wrong):
    with pytest.raises(
        ValueError, match=f"{next(iter(wrong))}=" if wrong.get("n_clusters") == 10_000 else next(iter(wrong))
    ):
        NCDKMeans(**wrong).fit(problem.X, problem.y)


@pytest.mark.needs_data("pendigits")
def test_pendigits_as_in_the_paper():
    problem = load_dataset("pendigits")

    def accuracies(**options):
        options = {"draw_power": 1, "selection": "distance"} | options
        models = [NCDKMeans(5, **options, random_state=seed).fit(problem.X, problem.y) for seed in range(10)]
        return 100 * np.array(
            [clustering_accuracy(problem.y_test_novel, m.predict(problem.X_test_novel)) for m in models]
        )

    assert accuracies().mean() == pytest.approx(81.7, abs=0.1)
    assert accuracies(draw_power=2, selection="inertia").mean() == pytest.approx(81.7, abs=0.1)
    assert accuracies(on="all").mean() == pytest.approx(72.7, abs=3)  # 81.4 if known centroids took part
    assert accuracies(on="all", update="known_and_novel").mean() == pytest.approx(75.3, abs=8)  # paper: 4.0
