"""The deep methods in plain PyTorch, one model at a time: slow, obvious, and the yardstick of the engine.

Written from the paper and from what its text leaves out. The tests compare the engine's losses with these step by step;
the benchmarks compare the engine's speed with these.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

QUEUE_ROWS = 2000


def mlp(widths: list[int], dropout: float) -> nn.Sequential:
    """Linear layers with ReLU, batch normalisation and dropout between them, nothing after the last."""
    layers: list[nn.Module] = []
    for i, (n_in, n_out) in enumerate(zip(widths, widths[1:], strict=False)):
        layers.append(nn.Linear(n_in, n_out))
        if i < len(widths) - 2:
            layers += [nn.ReLU(), nn.BatchNorm1d(n_out), nn.Dropout(dropout)]
    return nn.Sequential(*layers)


class Network(nn.Module):
    """An encoder and its heads."""

    def __init__(self, n_features: int, latent_dim: int, dropout: float, heads: dict[str, list[int]]):
        super().__init__()
        # NOTE[DIFF]: no fewer than 8 units, which the paper's data sets never have: one or two may die together
        hidden = [max(8, 3 * n_features // 4), max(8, n_features // 2)]
        self.encoder = mlp([n_features, *hidden, latent_dim], dropout)
        for name, widths in heads.items():
            setattr(self, name, mlp([latent_dim, *widths], dropout))


def pbn_network(n_features: int, n_classes: int, latent_dim: int, dropout: float) -> Network:
    decoder = [max(8, n_features // 2), max(8, 3 * n_features // 4), n_features]
    return Network(n_features, latent_dim, dropout, {"decoder": decoder, "classifier": [n_classes]})


def baseline_network(n_features: int, n_classes: int, latent_dim: int, dropout: float) -> Network:
    return Network(n_features, latent_dim, dropout, {"classifier": [n_classes]})


def tabularncd_network(n_features: int, n_classes: int, n_clusters: int, latent_dim: int, dropout: float) -> Network:
    # one more class: "unlabelled"
    return Network(n_features, latent_dim, dropout, {"classifier": [n_classes + 1], "cluster_head": [n_clusters]})


def pbn_loss(network: Network, x: torch.Tensor, y: torch.Tensor, w: float) -> torch.Tensor:
    z = F.normalize(network.encoder(x), dim=1)
    reconstruction_error = ((network.decoder(z) - x) ** 2).sum(dim=1).mean()
    labeled = y >= 0
    cross_entropy = F.cross_entropy(network.classifier(z[labeled]), y[labeled])
    return w * cross_entropy + (1 - w) * reconstruction_error


def baseline_loss(network: Network, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(network.classifier(F.normalize(network.encoder(x), dim=1)), y)


def augment(x: torch.Tensor, queue: torch.Tensor, k_neighbors: int, generator: torch.Generator) -> torch.Tensor:
    """Move each row a random fraction towards one of its most cosine-similar rows of the batch and the queue."""
    pool = torch.cat([x, queue])
    similarity = F.normalize(x, dim=1) @ F.normalize(pool, dim=1).T
    similarity[torch.arange(len(x)), torch.arange(len(x))] = -math.inf  # not towards itself
    nearest = similarity.topk(min(k_neighbors, len(pool) - 1), dim=1).indices
    choice = torch.randint(nearest.shape[1], (len(x), 1), generator=generator)
    neighbour = pool[nearest.gather(1, choice).squeeze(1)]
    return x + torch.rand(len(x), 1, generator=generator) * (neighbour - x)


def pseudo_labels(z: torch.Tensor, top_k: float) -> torch.Tensor:
    """Pairs (i < j) of rows, and whether one is among the other's top_k most cosine-similar latents."""
    n = len(z)
    first, second = torch.triu_indices(n, n, offset=1)
    similarity = F.cosine_similarity(z[first], z[second])
    matrix = torch.full((n, n), -math.inf, dtype=z.dtype)
    matrix[first, second] = similarity
    matrix[second, first] = similarity
    nearest = matrix.argsort(dim=1, descending=True)[:, : int(top_k * n)]
    linked = torch.zeros(n, n, dtype=torch.bool).scatter_(1, nearest, True)
    linked = linked | linked.T
    return linked[first, second].to(z.dtype)


def pair_loss(logits: torch.Tensor, targets: torch.Tensor, eps: float = 1e-7) -> torch.Tensor:
    """Binary cross-entropy of the inner products of the softmax outputs of all pairs (i < j)."""
    n = len(logits)
    first, second = torch.triu_indices(n, n, offset=1)
    p = logits.softmax(dim=1)
    same = (p[first] * p[second]).sum(dim=1)
    return -(targets * (same + eps).log() + (1 - targets) * (1 - same + eps).log()).mean()


def tabularncd_loss(
    network: Network, x: torch.Tensor, y: torch.Tensor, view: torch.Tensor, w1: float, w2: float, top_k: float
) -> torch.Tensor:
    """`view` is the augmented batch, row by row; the classes of unlabelled rows in y are -1."""
    labeled = y >= 0
    z = network.encoder(x)
    z_view = torch.zeros_like(z)
    # Views of unlabelled and of labelled rows are encoded apart: each group has its own batch statistics.
    for group in (~labeled, labeled):
        if group.any():
            z_view = z_view.index_put((group.nonzero().squeeze(1),), network.encoder(view[group]))
    logits, logits_view = network.classifier(z), network.classifier(z_view)
    n_classes = logits.shape[1] - 1
    cross_entropy = F.cross_entropy(logits, torch.where(labeled, y, n_classes))
    loss = w1 * cross_entropy + (1 - w1) * F.mse_loss(logits, logits_view)
    if (~labeled).sum() > 1:
        cluster_logits = network.cluster_head(z[~labeled])
        targets = pseudo_labels(z[~labeled].detach(), top_k)
        z_again = network.encoder(view[~labeled])  # with dropout of its own, and once more in the running statistics
        consistency = F.mse_loss(cluster_logits, network.cluster_head(z_again))
        loss = loss + w2 * pair_loss(cluster_logits, targets) + (1 - w2) * consistency
    return loss


def train(
    method: str,
    X: np.ndarray,
    codes: np.ndarray,
    params: dict,
    *,
    epochs: int,
    batch_size: int = 512,
    seed: int = 0,
) -> tuple[Network, list[float]]:
    """Train one model as a straightforward loop would; return it and the mean loss of each epoch."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    params = dict(params)
    lr, dropout, latent_dim = params.pop("lr"), params.pop("dropout"), params.pop("latent_dim")
    if method == "Baseline":
        X, codes = X[codes >= 0], codes[codes >= 0]
    order = np.random.default_rng(0).permutation(len(X))
    x = torch.tensor(X[order], dtype=torch.float32)
    y = torch.tensor(codes[order])
    n_features, n_classes = X.shape[1], int(codes.max()) + 1
    if method == "TabularNCD":
        k_neighbors = params.pop("k_neighbors")
        network = tabularncd_network(n_features, n_classes, params.pop("n_clusters"), latent_dim, dropout)
    else:
        build = {"PBN": pbn_network, "Baseline": baseline_network}[method]
        network = build(n_features, n_classes, latent_dim, dropout)
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr)
    queues = {True: x[:0], False: x[:0]}  # latest labelled and unlabelled rows
    history = []
    for _ in range(epochs):
        losses = []
        for start in range(0, len(x), batch_size):
            xb, yb = x[start : start + batch_size], y[start : start + batch_size]
            if method == "PBN":
                loss = pbn_loss(network, xb, yb, **params)
            elif method == "Baseline":
                loss = baseline_loss(network, xb, yb)
            else:
                view = torch.zeros_like(xb)
                for known, group in ((True, yb >= 0), (False, yb < 0)):
                    view[group] = augment(xb[group], queues[known], k_neighbors, generator)
                    queues[known] = torch.cat([queues[known], xb[group]])[-QUEUE_ROWS:]
                loss = tabularncd_loss(network, xb, yb, view, **params)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        history.append(float(np.mean(losses)))
    return network, history
