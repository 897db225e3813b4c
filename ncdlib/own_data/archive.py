"""A discovery as JSON and arrays, and back: what `Discovery.save` writes, and `ncdlib.load` reads."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ncdlib.clustering.validity import KEstimate
from ncdlib.methods.saving import Savable, from_state, state_of
from ncdlib.own_data.edit import Edit
from ncdlib.own_data.explain import ClassProfile, Difference
from ncdlib.own_data.known import KnownOrNew
from ncdlib.own_data.prepare import Feature, TablePreprocessor
from ncdlib.own_data.result import Discovery
from ncdlib.selection.search import HiddenClassSearchCV

RECORDS = {cls.__name__: cls for cls in (Discovery, Edit, ClassProfile, Difference, KEstimate, KnownOrNew, Feature)}
OF_A_SEARCH = ("n_splits_", "scoring_", "best_params_", "best_score_", "best_index_", "cv_results_")


def pack(found: Discovery) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Take a discovery apart into what JSON can hold, and arrays; the inverse of `unpack`.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> from ncdlib.own_data.archive import pack, unpack
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> unpack(*pack(found)).to_frame().equals(found.to_frame())
    True
    """
    packer = _Packer()
    return {"class": "Discovery", "state": packer.pack(found)}, packer.arrays


def unpack(meta: dict[str, Any], arrays: dict[str, NDArray]) -> Discovery:
    """Put together what `pack` took apart."""
    return _unpack(meta["state"], arrays)


class _Packer:
    """What was met twice is stored once: an edited discovery shares most arrays with the original."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray] = {}
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []  # so that no two values have the same id

    def pack(self, value: Any) -> Any:
        if isinstance(value, np.generic) and not isinstance(value, str):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str):
            return value
        kind = type(value).__name__
        if RECORDS.get(kind) is type(value):
            names = value._fields if isinstance(value, tuple) else [field.name for field in fields(value)]
            return {kind: {name: self.pack(getattr(value, name)) for name in names}}
        if isinstance(value, list):
            return [self.pack(item) for item in value]
        if isinstance(value, tuple | frozenset):
            return {"frozenset" if isinstance(value, frozenset) else "tuple": [self.pack(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.pack(key), self.pack(item)] for key, item in value.items()]}
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)} if value.dtype.kind in "biufM" else {"objects": self._objects(value)}
        if isinstance(value, pd.Index):
            return {"index": self._index(value)}
        if isinstance(value, TablePreprocessor):
            return {kind: {name: self.pack(item) for name, item in vars(value).items()}}
        if isinstance(value, HiddenClassSearchCV):
            of_search = {name: getattr(value, name) for name in ("n_iter", *OF_A_SEARCH)}
            if not isinstance(of_search["scoring_"], str):  # a function of the user's
                of_search["scoring_"] = getattr(of_search["scoring_"], "__name__", "score")
            return {kind: self.pack(of_search)}
        if isinstance(value, Savable):
            meta, arrays = state_of(value)
            prefix = f"model {len(self.arrays)}:"
            self.arrays |= {f"{prefix}{name}": array for name, array in arrays.items()}
            return {"model": [prefix, self.pack(meta)]}
        raise TypeError(
            f"cannot save a Discovery that holds a {kind}: give classes as text or numbers, and a method of ncdlib"
        )

    def _array(self, array: NDArray) -> str:
        if id(array) not in self.names:
            self.names[id(array)] = name = f"array {len(self.arrays)}"
            self.arrays[name] = array
            self.kept.append(array)
        return self.names[id(array)]

    def _objects(self, array: NDArray) -> list[Any]:
        """Few different values, such as labels, are stored once each."""
        if isinstance(array, np.ma.MaskedArray):
            array = array.astype(object).filled(None)
        if any(isinstance(value, dict | list | tuple) for value in array):
            return [None, [self.pack(value) for value in array]]
        codes, values = pd.factorize(np.asarray(array, dtype=object))
        return [self.pack(codes), [self.pack(value) for value in values]]

    def _index(self, index: pd.Index) -> list[Any]:
        if isinstance(index, pd.RangeIndex):
            return [self.pack(index.name), [index.start, index.stop, index.step]]
        values = index.to_numpy() if index.dtype.kind in "biuf" else np.array(index, dtype=object)
        if values.dtype == object and not all(isinstance(value, str | int | float) for value in values):
            raise TypeError("cannot save a Discovery whose rows are not named by text or numbers: X.reset_index()")
        return [self.pack(index.name), self.pack(values)]


def _unpack(state: Any, arrays: dict[str, NDArray]) -> Any:
    if isinstance(state, list):
        return [_unpack(item, arrays) for item in state]
    if not isinstance(state, dict):
        return state
    (kind, content), *_ = state.items()
    if kind in RECORDS:
        return RECORDS[kind](**{name: _unpack(item, arrays) for name, item in content.items()})
    if kind == "array":
        return arrays[content]
    if kind == "model":
        prefix, meta = content
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        return from_state(_unpack(meta, arrays), own)
    if kind == TablePreprocessor.__name__:
        preprocessor = TablePreprocessor()
        vars(preprocessor).update({name: _unpack(item, arrays) for name, item in content.items()})
        return preprocessor
    content = _unpack(content, arrays)
    if kind == HiddenClassSearchCV.__name__:
        search = HiddenClassSearchCV(None, {}, n_iter=content.pop("n_iter"))
        vars(search).update(content)
        return search
    if kind == "index":
        name, values = content
        return pd.Index(values, name=name) if isinstance(values, np.ndarray) else pd.RangeIndex(*values, name=name)
    if kind == "objects":
        codes, values = content
        objects = np.empty(len(values) + 1, dtype=object)  # the last one, None, for the code -1
        objects[: len(values)] = values
        return objects[:-1] if codes is None else objects[codes]
    return {"dict": dict, "tuple": tuple, "frozenset": frozenset}[kind](content)
