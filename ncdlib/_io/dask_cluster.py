"""Spread work over a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from joblib import parallel_config


@contextmanager
def dask_cluster(address: str | None) -> Iterator[None]:
    """Run joblib's work on the cluster whose scheduler has this address; None leaves it on this machine."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("a Dask cluster needs Dask: pip install 'dask[distributed]'") from error
    with Client(address, timeout=10), parallel_config(backend="dask"):
        yield
