"""The stacked engine against plain PyTorch (benchmarks/reference.py), and against itself."""

import sys
from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from tqdm import tqdm

from ncdlib import PBN, Baseline, TabularNCD, clustering_accuracy, load_dataset, make_ncd_blobs
from ncdlib._io.checks import encode_labels
from ncdlib.methods import engine, tabularncd

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import reference  # noqa: E402

PARAMS = {
    "PBN": [{"latent_dim": 5, "lr": 0.01, "w": 0.3}, {"latent_dim": 9, "lr": 0.001, "w": 0.8}],
    "Baseline": [{"latent_dim": 5, "lr": 0.01}, {"latent_dim": 9, "lr": 0.001}],
    "TabularNCD": [
        {"latent_dim": 5, "lr": 0.01, "k_neighbors": 5, "top_k": 0.1, "w1": 0.3, "w2": 0.7, "n_clusters": 3},
        {
            "latent_dim": 9,
            "lr": 0.001,
            "k_neighbors": 20,
            "top_k": 0.3,
            "w1": 0.6,
            "w2": 0.9,
            "n_clusters": 5,
        },
    ],
}
METHODS = {"PBN": PBN, "Baseline": Baseline, "TabularNCD": TabularNCD}


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(n_features=12, n_samples=400, random_state=1)


def estimator(method, **kwargs):
    defaults = {"n_clusters": 3, "epochs": 4, "batch_size": 64, "verbose": False, "dropout": 0.0}
    return METHODS[method](**(defaults | kwargs))


def copy_into(network, stack, k):
    """Give a reference network the weights of network k of a stack."""
    weights = stack.extract(k)
    for name, mlp in stack.mlps.items():
        linears = [m for m in getattr(network, name) if isinstance(m, torch.nn.Linear)]
        for i in range(mlp.n_layers):
            linears[i].weight.data = torch.from_numpy(weights[f"{mlp.layer(i)}.weight"])
            linears[i].bias.data = torch.from_numpy(weights[f"{mlp.layer(i)}.bias"])


def doubled(batch):
    """The batch in double precision."""
    return replace(
        batch, **{n: v.double() for n, v in vars(batch).items() if torch.is_tensor(v) and v.is_floating_point()}
    )


@pytest.mark.parametrize(("n_features", "hidden"), [(16, (12, 8)), (62, (46, 31)), (562, (421, 281))])
def test_hidden_layers_are_three_quarters_and_half_as_wide_as_the_data(n_features, hidden):
    assert engine.hidden_widths(n_features) == hidden
    network = reference.pbn_network(n_features, 5, 10, 0.0)
    linears = [m for part in (network.encoder, network.decoder) for m in part if isinstance(m, torch.nn.Linear)]
    assert [m.out_features for m in linears] == [*hidden, 10, *reversed(hidden), n_features]


def test_weights_start_as_those_of_torch_do():
    stack = engine.Stack([engine.Mlp("encoder", [np.full(1, n) for n in (100, 400, 50)])], [0])
    torch.manual_seed(0)
    network = reference.mlp([100, 400, 50], 0.0)
    for i, linear in enumerate(m for m in network if isinstance(m, torch.nn.Linear)):
        for kind in ("weight", "bias"):
            ours, theirs = stack.extract(0)[f"encoder.{i}.{kind}"], getattr(linear, kind).detach().numpy()
            assert ours.shape == theirs.shape
            assert np.abs(ours).max() == pytest.approx(np.abs(theirs).max(), rel=0.1)
            assert np.std(ours) == pytest.approx(np.std(theirs), rel=0.25)


def test_batches_are_slices_of_rows_shuffled_once():
    codes = np.arange(129) % 3 - 1
    X = np.arange(2 * 129.0).reshape(129, 2)
    batches = engine.make_batches(X, codes, 2, 64, torch.device("cpu"))
    order = np.random.default_rng(0).permutation(129)  # as in the reference
    for batch, rows in zip(batches, (order[:64], order[64:]), strict=True):  # the last row joins the second batch
        assert set(batch.rows) == set(rows)
        assert batch.n_labeled == np.sum(codes[rows] >= 0)
        assert np.array_equal(batch.one_hot.numpy().argmax(axis=0), codes[batch.rows[: batch.n_labeled]])
        assert (codes[batch.rows[batch.n_labeled :]] == -1).all()
        assert np.array_equal(batch.x.numpy(), X[batch.rows].T)


@pytest.mark.parametrize("method", METHODS)
def test_losses_equal_the_reference_step_by_step(method, problem):
    """Two models in one stack follow the reference's losses through 20 AdamW steps, dropout off.

    In double precision: AdamW divides by the size of the gradient, so in single precision rounding alone would soon
    send the two ways.
    """
    codes, classes = encode_labels(problem.y)
    X = problem.X.astype(np.float32)
    models = [estimator(method, **p) for p in PARAMS[method]]
    for model in models:
        model.classes_, model.latent_dim_ = classes, model.latent_dim
        model.n_clusters_ = model.n_clusters
    lead = models[0]
    latent = np.array([m.latent_dim for m in models])
    widths = [np.full(2, n) for n in (12, *engine.hidden_widths(12))]
    stack = engine.Stack(
        [engine.Mlp("encoder", [*widths, latent]), *lead._heads(models, 12)], [0, 1], dtype=torch.float64
    )
    loss = lead._loss(models, stack, engine.Dropout([0.0, 0.0], torch.device("cpu")))
    rows = lead._training_rows(codes)
    batches = [doubled(b) for b in lead._make_batches(X[rows], codes[rows], torch.device("cpu"), epoch=0)]

    build = getattr(reference, f"{method.lower()}_network")
    networks = []
    for k, model in enumerate(models):
        sizes = (12, len(classes)) + ((model.n_clusters,) if method == "TabularNCD" else ())
        networks.append(build(*sizes, model.latent_dim, 0.0).double())
        copy_into(networks[k], stack, k)
    optimizers = [torch.optim.AdamW(n.parameters(), lr=m.lr) for n, m in zip(networks, models, strict=True)]
    rates = [m.lr for m in models]

    for step in range(20):
        batch = batches[step % len(batches)]
        x, y = batch.x.T, torch.from_numpy(codes[rows][batch.rows])
        if method == "TabularNCD":
            states = [rng.bit_generator.state for rng in stack.rngs]
            views = tabularncd.make_views(batch, stack, torch.tensor([m.k_neighbors for m in models]))
            for rng, state in zip(stack.rngs, states, strict=True):
                rng.bit_generator.state = state  # the loss below draws the same views again
        ours = loss(batch)["loss"]
        for k, (network, optimizer, model) in enumerate(zip(networks, optimizers, models, strict=True)):
            if method == "PBN":
                theirs = reference.pbn_loss(network, x, y, model.w)
            elif method == "Baseline":
                theirs = reference.baseline_loss(network, x, y)
            else:
                theirs = reference.tabularncd_loss(network, x, y, views[k].T, model.w1, model.w2, model.top_k)
            assert ours[k].item() == pytest.approx(theirs.item(), rel=1e-6), f"step {step}, model {k}"
            optimizer.zero_grad()
            theirs.backward()
            optimizer.step()
        stack.adamw_step(ours.sum(), rates)

    # After training, the plain NumPy forward pass is the reference in evaluation mode (running statistics).
    for k, network in enumerate(networks):
        network.eval()
        with torch.no_grad():
            expected = network.encoder(torch.from_numpy(X).double()).numpy()
        np.testing.assert_allclose(engine.apply(stack.extract(k), "encoder", X), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("method", METHODS)
def test_a_model_in_a_stack_equals_the_same_model_alone(method, dropout, problem):
    """With other seeds, TabularNCD may differ by 1e-4: which of two neighbours is nearer can hang on the last bit."""
    seeds = [0, 1]
    est = estimator(method, dropout=dropout)
    assert est.stack_size(problem.X.shape[1]) >= len(seeds)  # they do share a stack
    stacked = est.fit_many(problem.X, problem.y, PARAMS[method], seeds)
    for params, seed, model in zip(PARAMS[method], seeds, stacked, strict=True):
        alone = estimator(method, **({"dropout": dropout} | params), random_state=seed).fit(problem.X, problem.y)
        tolerance = 1e-5 if dropout == 0 else 1e-3  # what is dropped is divided by a small rest, rounding included
        np.testing.assert_allclose(model.history_["loss"], alone.history_["loss"], rtol=tolerance)
        np.testing.assert_allclose(
            model.transform(problem.X_test), alone.transform(problem.X_test), rtol=tolerance, atol=tolerance
        )


def test_a_network_without_dropout_draws_no_noise_for_it(problem):
    """TabularNCD's views come from the same generator: beside a network that drops, they must be the same."""
    sets = [{"dropout": 0.0, "k_neighbors": 50}, {"dropout": 0.4}]
    stacked, _ = estimator("TabularNCD").fit_many(problem.X, problem.y, sets, [0, 1])
    alone = estimator("TabularNCD", **sets[0], random_state=0).fit(problem.X, problem.y)
    np.testing.assert_allclose(stacked.history_["loss"], alone.history_["loss"], rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_result_and_other_seed_another(method, problem):
    first, second, other = (
        estimator(method, dropout=0.2, random_state=seed).fit(problem.X, problem.y) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.transform(problem.X), second.transform(problem.X))
    assert not np.array_equal(first.transform(problem.X), other.transform(problem.X))


def test_fused_functions_pass_gradcheck():
    torch.manual_seed(0)

    def random(*shape):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    mask = (torch.rand(2, 3, 7, dtype=torch.float64) > 0.3) / 0.7
    layers = [random(2, *shape) for shape in ((3, 4), (3, 1), (3, 1), (3, 1), (2, 3), (2, 1))]

    def chain(x, *parameters):
        running = iter([(torch.zeros(2, 3, 1, dtype=torch.float64), torch.ones(2, 3, 1, dtype=torch.float64))])
        return engine.Chain.apply(x, iter([mask]), running, *parameters)

    assert torch.autograd.gradcheck(chain, (random(2, 4, 7), *layers))
    assert torch.autograd.gradcheck(chain, (random(4, 7).detach(), *layers))  # rows that all networks share
    one_hot = torch.eye(3, dtype=torch.float64)[torch.tensor([0, 2, 1, 1])].T
    assert torch.autograd.gradcheck(lambda a: engine.SoftmaxCrossEntropy.apply(a, one_hot), (random(2, 3, 4),))
    divisor = torch.tensor([3.0, 5.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda a, b: engine.SquaredError.apply(a, b, divisor), (random(2, 3, 4), random(2, 3, 4))
    )
    assert torch.autograd.gradcheck(engine.unit_length, (random(2, 3, 4),))
    p = torch.softmax(random(2, 3, 9), dim=1).detach().requires_grad_()
    z = random(2, 4, 9).detach()
    assert torch.autograd.gradcheck(lambda p: tabularncd.PairLoss.apply(p, z, [0.2, 0.4]), (p,))


def test_dropout_masks_have_the_rates_asked_for():
    stack = engine.Stack([engine.Mlp("encoder", [np.full(3, 4), np.full(3, 50), np.full(3, 3)])], [0, 1, 2])
    rates = [0.25, 0.6, 0.999999]  # the last one is closer to 1 than 16 bits can tell
    (mask,) = engine.Dropout(rates, torch.device("cpu")).masks(stack, [50], 2000)
    for k, rate in enumerate(rates):
        assert (mask[k] == 0).float().mean().item() == pytest.approx(rate, abs=0.01)
        if k < 2:
            assert mask[k].max().item() == pytest.approx(1 / (1 - rate))
    assert not torch.equal(mask[0] == 0, mask[1] == 0)


def test_pseudo_labels_and_views_equal_the_reference(problem):
    torch.manual_seed(0)
    z = torch.nn.functional.normalize(torch.randn(6, 40), dim=0)
    first, second = torch.triu_indices(40, 40, offset=1)
    for top_k in (0.1, 0.26):
        ours = tabularncd.pseudo_labels(z, top_k)
        torch.testing.assert_close(ours[first, second], reference.pseudo_labels(z.T, top_k))
    for top_k in (0.0, 0.01):  # less than one row: no positive pair
        assert tabularncd.pseudo_labels(z, top_k).sum() == 0

    codes, _ = encode_labels(problem.y)
    X = problem.X.astype(np.float32)
    batches = TabularNCD(batch_size=64)._make_batches(X, codes, torch.device("cpu"), epoch=0)
    for batch in batches:
        own_side = codes[batch.rows] >= 0
        neighbour_side = codes[batch.nearest.numpy()] >= 0
        assert np.all(neighbour_side == own_side[:, None])  # labelled rows move towards labelled ones only
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    batch = batches[1]
    assert batch.data is batches[0].data  # once in the memory of a device
    similarity = np.einsum("nf,nkf->nk", unit[batch.rows], unit[batch.nearest.numpy()])
    assert np.all(np.diff(similarity, axis=1) <= 1e-5)  # nearest first


def test_views_look_for_neighbours_among_the_batch_and_the_latest_rows(problem, monkeypatch):
    """The table of nearest rows is what a queue gives that is filled batch by batch, epoch after epoch."""
    monkeypatch.setattr(tabularncd, "QUEUE_ROWS", 90)
    monkeypatch.setattr(tabularncd, "MAX_NEIGHBORS", 20)
    codes, _ = encode_labels(problem.y)
    X = problem.X.astype(np.float32)
    batches = TabularNCD(batch_size=64)._make_batches(X, codes, torch.device("cpu"), epoch=0)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    queues = {True: deque(maxlen=90), False: deque(maxlen=90)}
    for epoch in range(3):
        for batch in batches:
            for side, queue in queues.items():
                rows = batch.rows[(codes[batch.rows] >= 0) == side]
                similarity = unit[rows] @ unit[[*rows, *queue]].T
                np.fill_diagonal(similarity, -np.inf)
                expected = -np.sort(-similarity, axis=1)[:, :20]
                nearest = batch.nearest.numpy()[(codes[batch.rows] >= 0) == side]
                found = np.einsum("nf,nkf->nk", unit[rows], unit[nearest])
                if epoch == 2:  # before, the queue is still filling up
                    np.testing.assert_allclose(found, expected, atol=1e-5)
                queue.extend(rows)


def test_views_of_few_rows_stay_where_the_rows_are(problem):
    """Less than 200 rows on either side: ten copies of each at least in the queue of 2,000."""
    codes, _ = encode_labels(problem.y)
    assert max(np.sum(codes < 0), np.sum(codes >= 0)) < 200
    batch = TabularNCD()._make_batches(problem.X.astype(np.float32), codes, torch.device("cpu"), epoch=0)[0]
    stack = engine.Stack([engine.Mlp("encoder", [np.full(2, 12), np.full(2, 3)])], [0, 1])
    ten, hundred = tabularncd.make_views(batch, stack, torch.tensor([10, 100]))
    assert torch.equal(ten, batch.x)
    assert (hundred != batch.x).any(dim=0).float().mean() > 0.8


def test_views_lie_anywhere_between_a_row_and_its_neighbour(problem):
    codes, _ = encode_labels(problem.y)
    batch = TabularNCD()._make_batches(problem.X.astype(np.float32), codes, torch.device("cpu"), epoch=0)[0]
    batch = replace(batch, rows_first=torch.zeros_like(batch.rows_first), data=torch.ones_like(batch.data))
    stack = engine.Stack([engine.Mlp("encoder", [np.full(2, 12), np.full(2, 3)])], [0, 1])
    views = tabularncd.make_views(batch, stack, torch.tensor([5, 5]))  # rows at 0, neighbours at 1
    assert torch.equal(views, views[:, :1].expand_as(views))  # on the straight line
    first, second = views[:, 0].numpy()
    assert not np.array_equal(first, second)
    for fractions in (first, second):
        np.testing.assert_allclose(np.quantile(fractions, [0, 0.25, 0.5, 0.75, 1]), [0, 0.25, 0.5, 0.75, 1], atol=0.1)


def test_pretraining_replaces_features_and_learns_to_tell_them(problem, monkeypatch):
    stack = engine.Stack([engine.Mlp("encoder", [np.full(2, 30), np.full(2, 3)])], [0, 1])
    x = torch.arange(30 * 200.0).view(30, 200)  # every value tells its feature and its row
    corrupted = tabularncd.corrupt(x, stack)
    changed = corrupted != x
    assert changed.float().mean().item() == pytest.approx(tabularncd.MASKED_SHARE, abs=0.02)
    assert torch.equal(corrupted // 200, (x // 200).expand_as(corrupted))  # from the same feature of another row
    assert not torch.equal(corrupted[0], corrupted[1])
    many = torch.arange(2 * 60_000.0).view(2, 60_000)  # more rows than half of what 16 bits count
    assert torch.equal(tabularncd.corrupt(many, stack) // 60_000, (many // 60_000).expand(2, 2, -1))

    histories, train = [], engine.train
    monkeypatch.setattr(engine, "train", lambda *args: histories.append(train(*args)) or histories[-1])
    plain, trained = (
        estimator("TabularNCD", pretrain_epochs=epochs, random_state=0).fit(problem.X, problem.y) for epochs in (0, 40)
    )
    _, pretraining, joint = (history[0] for history in histories)
    assert pretraining["loss"][-1] < 0.8 * pretraining["loss"][0]
    assert set(trained.history_) == set(plain.history_) == set(joint) != {"loss"}
    assert not np.array_equal(plain.transform(problem.X), trained.transform(problem.X))


def test_history_and_shapes(problem):
    model = estimator("PBN", latent_dim=6, random_state=0).fit(problem.X, problem.y)
    assert set(model.history_) == {"loss", "cross_entropy", "reconstruction"}
    assert len(model.history_["loss"]) == 4
    np.testing.assert_allclose(
        model.history_["loss"],
        0.5 * model.history_["cross_entropy"] + 0.5 * model.history_["reconstruction"],
        rtol=1e-5,
    )
    assert model.transform(problem.X_test).shape == (len(problem.X_test), 6)
    assert np.all(model.labels_[problem.y != -1] == -1)
    assert set(model.labels_[problem.y == -1]) == {0, 1, 2}


@pytest.mark.parametrize("method", METHODS)
def test_finds_well_separated_classes(method):
    problem = make_ncd_blobs(n_known=4, n_novel=3, n_features=10, random_state=0)
    model = estimator(method, epochs=60, lr=0.01, random_state=0).fit(problem.X, problem.y)
    assert model.score_known(problem.X_test_known, problem.y_test_known) > 0.95
    if method != "Baseline":  # it learns nothing of the unlabelled rows, and promises nothing about them
        assert clustering_accuracy(problem.y_test_novel, model.predict(problem.X_test_novel)) > 0.9


@pytest.mark.parametrize("method", METHODS)
def test_what_real_tables_have_simply_works(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(129, 3))  # 129 = 2 * 64 + 1: the last batch would have one row
    X[:, 1] = 7.0  # a constant column
    X[10:20] = X[0]  # duplicates
    y = rng.integers(0, 2, size=129)
    y[60:] = -1
    y[0] = 5  # a class with one row
    model = METHODS[method](n_clusters=2, epochs=2, batch_size=64, random_state=0, verbose=False).fit(X, y)
    assert np.all(np.isfinite(model.transform(X)))
    one_feature = METHODS[method](n_clusters=2, epochs=2, batch_size=64, random_state=0, verbose=False).fit(X[:, :1], y)
    assert np.all(np.isfinite(one_feature.transform(X[:, :1])))
    sorted_rows = METHODS[method](n_clusters=2, epochs=2, batch_size=8, random_state=0, verbose=False)
    y_rare = np.full(129, -1)
    y_rare[:4] = [0, 0, 1, 1]  # most batches have no labelled row
    assert np.all(np.isfinite(sorted_rows.fit(X, y_rare).transform(X)))
    y_rare = rng.integers(0, 2, size=129)
    y_rare[:4] = -1  # most batches have no unlabelled row
    assert np.all(np.isfinite(sorted_rows.fit(X, y_rare).transform(X)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latent_dim": 0}, "latent_dim must be an integer in"),
        ({"latent_dim": 2.5}, "latent_dim must be an integer in"),
        ({"dropout": 1.0}, r"dropout must be a number in \[0, 1\)"),
        ({"dropout": -0.1}, "dropout"),
        ({"w": 1.5}, r"w must be a number in \[0, 1\]"),
        ({"lr": 0.0}, "lr must be a number"),
        ({"epochs": 0}, "epochs"),
        ({"n_clusters": 10_000}, "n_clusters=10000 is more than the"),
        ({"clusterer": "dbscan"}, "clusterer must be one of kmeans"),
        ({"reconstruction": "max"}, "reconstruction"),
        ({"device": "nonsense"}, "device='nonsense' cannot be used"),
        ({"device": "meta"}, "device='meta' cannot be used"),  # found in the training only, as a full memory would be
    ],
)
def test_hyperparameters_out_of_range_are_named(change, message, problem):
    with pytest.raises(ValueError, match=message):
        estimator("PBN", **change).fit(problem.X, problem.y)


def test_divergence_is_an_error_in_fit_and_a_mark_in_fit_many(problem):
    huge = problem.X * 1e12
    with pytest.raises(ValueError, match="training diverged"):
        estimator("PBN", lr=1e6).fit(huge, problem.y)
    good, bad = estimator("PBN").fit_many(huge, problem.y, [{"lr": 1e-5, "w": 1.0}, {"lr": 1e6}], [0, 0])
    assert bad.diverged_
    bad = estimator("TabularNCD").fit_many(huge, problem.y, [{"lr": 1e6}], [0])[0]
    with pytest.raises(NotFittedError, match="TabularNCD has learned nothing: its training diverged"):
        bad.predict(huge)
    with pytest.raises(ValueError, match="too large to be squared in float32"):
        estimator("PBN").fit(problem.X * 1e200, problem.y)


def test_fit_many_refuses_what_cannot_differ(problem):
    with pytest.raises(ValueError, match="epochs must be the same for all models"):
        estimator("PBN").fit_many(problem.X, problem.y, [{"epochs": 3}, {"epochs": 4}])
    with pytest.raises(ValueError, match="2 parameter sets but 1 random states"):
        estimator("PBN").fit_many(problem.X, problem.y, [{}, {}], [0])
    with pytest.raises(ValueError, match="a list of hyperparameter sets, got a single one"):
        estimator("PBN").fit_many(problem.X, problem.y, {"lr": 0.01})
    assert estimator("PBN").fit_many(problem.X, problem.y, []) == []


@pytest.mark.parametrize("n_features", [1, 2, 3])
@pytest.mark.parametrize("method", [PBN, Baseline])
def test_few_columns_are_enough(method, n_features):
    """A hidden layer of one unit would die in some of the networks, and put all rows into one cluster."""
    problem = make_ncd_blobs(n_known=3, n_novel=2, n_features=n_features, random_state=0)
    model = method(2, epochs=60, verbose=False)
    for fitted in model.fit_many(problem.X, problem.y, [{}] * 10, list(range(10))):
        assert set(fitted.labels_[problem.y == -1]) == {0, 1}


@pytest.mark.parametrize("method", [PBN, Baseline, TabularNCD])
def test_one_column_is_enough(method):
    """A latent of one dimension, scaled to length one, would know two places only."""
    classes = np.arange(600) % 5
    X = (3.0 * classes + np.random.default_rng(0).normal(scale=0.5, size=600))[:, None]
    y = np.where(classes < 3, classes, -1)
    models = method(2, epochs=60, verbose=False).fit_many(X, y, [{}] * 6, list(range(6)))
    assert np.mean([model.score_known(X[y >= 0], y[y >= 0]) for model in models]) > 0.55
    assert np.mean([clustering_accuracy(classes[y < 0], model.labels_[y < 0]) for model in models]) > 0.95


def test_defaults_are_useful():
    digits = load_dataset("digits")
    found = PBN(5, random_state=0, verbose=False).fit(digits.X, digits.y).predict(digits.X_test_novel)
    assert clustering_accuracy(digits.y_test_novel, found) > 0.85


def test_progress_bar_of_many_models(problem, monkeypatch, capsys):
    for verbose in (True, False):
        monkeypatch.setattr("ncdlib.methods.deep.tqdm", lambda **options: tqdm(**options | {"delay": 0}))
        PBN(3, epochs=2, verbose=verbose).fit_many(problem.X, problem.y, [{}, {"lr": 0.01}])
        assert ("PBN epochs: 100%" in capsys.readouterr().err) == verbose
