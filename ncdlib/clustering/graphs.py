"""Neighbour graphs: how rows hang together, their communities, and coordinates that follow the graph."""

from __future__ import annotations

import random

import igraph
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, eigsh
from sklearn.neighbors import NearestNeighbors

BRIDGE = 0.05  # of the mean degree, added to each row's: keeps rows without neighbours out of the leading coordinates


def nearest(Z: NDArray, n_neighbors: int) -> tuple[NDArray, NDArray]:
    """Distances and positions of each row's nearest other rows; fewer than `n_neighbors` in a small table."""
    search = NearestNeighbors(n_neighbors=min(n_neighbors, len(Z) - 1), algorithm="brute")
    return search.fit(Z).kneighbors()


def shared_neighbor_graph(Z: NDArray, n_neighbors: int = 15) -> sparse.csr_array:
    """Join rows by the share of neighbours that they have in common (Jaccard), as Jarvis and Patrick (1973) propose.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.clustering.graphs import shared_neighbor_graph
    >>> graph = shared_neighbor_graph(np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0]]), n_neighbors=2)
    >>> graph.toarray()[0].tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    n = len(Z)
    _, neighbors = nearest(Z, n_neighbors)
    each = np.column_stack([np.arange(n), neighbors])  # a row is a neighbour of its own
    size = each.shape[1]
    member = sparse.csr_array((np.ones(each.size), each.ravel(), np.arange(0, each.size + 1, size)), shape=(n, n))
    common = (member @ member.T).tocoo()
    share = common.data / (2 * size - common.data)
    row, column = common.coords
    keep = (share > 1 / n_neighbors) & (row != column)
    return sparse.csr_array((share[keep], (row[keep], column[keep])), shape=(n, n))


def fuzzy_neighbor_graph(Z: NDArray, n_neighbors: int = 15) -> sparse.csr_array:
    """Join each row to its neighbours with weights that fall from 1 with the distance, in a scale of its own.

    The graph that UMAP lays out (McInnes, Healy and Melville, 2018): dense and sparse regions weigh alike.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.clustering.graphs import fuzzy_neighbor_graph
    >>> fuzzy_neighbor_graph(np.array([[0.0], [1.0], [3.0]]), n_neighbors=1).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    distances, neighbors = nearest(Z, n_neighbors)
    n, size = neighbors.shape
    beyond = distances - distances[:, :1]
    low, high = np.zeros(n), np.full(n, np.inf)
    smallest = 1e-3 * beyond.mean() + 1e-12
    scale = np.full(n, beyond.mean() + 1e-9)
    for _ in range(40):  # bisection: each row has the same sum of weights
        too_wide = np.exp(-beyond / scale[:, None]).sum(axis=1) > np.log2(n_neighbors + 1)
        low, high = np.where(too_wide, low, scale), np.where(too_wide, scale, high)
        scale = np.maximum(np.where(np.isinf(high), 2 * scale, (low + high) / 2), smallest)
    weights = np.exp(-beyond / scale[:, None])
    bounds = np.arange(0, n * size + 1, size)
    directed = sparse.csr_array((weights.ravel(), neighbors.ravel(), bounds), shape=(n, n))
    return (directed + directed.T - directed * directed.T).tocsr()  # either way: the union of fuzzy sets


class Communities:
    """Leiden communities of a graph (Traag, Waltman and van Eck, 2019), by modularity at any resolution.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.clustering.graphs import Communities, shared_neighbor_graph
    >>> Z = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0]])
    >>> Communities(shared_neighbor_graph(Z, n_neighbors=2))(1.0).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, graph: sparse.csr_array, seed: int = 0) -> None:
        upper = sparse.triu(graph, k=1).tocoo()
        self.matrix, self.seed = graph, seed
        self.graph = igraph.Graph(n=graph.shape[0], edges=np.column_stack(upper.coords).tolist())
        self.weights = upper.data.tolist()

    def __call__(self, resolution: float) -> NDArray[np.int64]:
        """Return the community of each row: the higher the resolution, the more communities."""
        igraph.set_random_number_generator(random.Random(self.seed))  # noqa: S311 (no secret)
        try:
            found = self.graph.community_leiden(
                "modularity", weights=self.weights, resolution=resolution, n_iterations=2
            )
        finally:
            igraph.set_random_number_generator(random)  # igraph's own default
        return np.array(found.membership, dtype=np.int64)

    def merged_to(self, n_clusters: int) -> NDArray[np.int64]:
        """Communities fine enough, merged two by two where most joined: average linkage of the graph's weights."""
        for resolution in (0.3, 0.6, 1.0, 1.5, 2.5, 4.0, 8.0, 16.0):
            labels = self(resolution)
            if labels.max() + 1 >= 1.5 * n_clusters:
                break
        member = sparse.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)))
        joined = (member.T @ self.matrix @ member).toarray()
        sizes = np.bincount(labels).astype(float)
        group = np.arange(len(sizes))
        for _ in range(len(sizes) - n_clusters):
            linkage = joined / np.outer(sizes, sizes)
            np.fill_diagonal(linkage, -1)
            linkage[sizes == np.inf] = linkage[:, sizes == np.inf] = -1  # merged before
            kept, gone = sorted(np.unravel_index(linkage.argmax(), linkage.shape))
            joined[kept] += joined[gone]
            joined[:, kept] += joined[:, gone]
            sizes[kept] += sizes[gone]
            sizes[gone] = np.inf
            group[group == gone] = kept
        return np.unique(group, return_inverse=True)[1][labels]


def graph_coordinates(graph: sparse.csr_array, n_coordinates: int) -> NDArray[np.float64]:
    """Leading eigenvectors of the normalised graph: rows that hang together have similar coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.clustering.graphs import graph_coordinates, shared_neighbor_graph
    >>> Z = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0]])
    >>> U = graph_coordinates(shared_neighbor_graph(Z, n_neighbors=2), 2)
    >>> bool(np.allclose(U[0], U[2])), bool(np.allclose(U[0], U[3]))
    (True, False)
    """
    n = graph.shape[0]
    degree = np.asarray(graph.sum(axis=1)).ravel()
    scale = 1 / np.sqrt(degree + BRIDGE * degree.mean() + 1e-9)
    normalised = sparse.diags_array(scale) @ graph @ sparse.diags_array(scale)
    m = min(n_coordinates, n)
    if m < n // 3:
        try:
            values, vectors = eigsh(normalised, m, which="LA", v0=np.ones(n), tol=1e-4)
            return vectors[:, np.argsort(-values)]
        except ArpackError:
            pass  # LAPACK is slower, and always finds them
    return eigh(normalised.toarray(), subset_by_index=[n - m, n - 1])[1][:, ::-1]
