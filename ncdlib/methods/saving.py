"""Fitted models as files of arrays and JSON: no pickle, so that reading one executes nothing."""

from __future__ import annotations

import json
import os
import zipfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ncdlib._io.files import atomic_write
from ncdlib.methods.registry import METHODS


class Savable:
    """An estimator that can be written to a file once it is fitted.

    Examples
    --------
    >>> from ncdlib import PBN
    >>> from ncdlib.methods.saving import Savable
    >>> issubclass(PBN, Savable)
    True
    """

    def save(self, path: str | os.PathLike) -> Path:
        """Write the fitted model to one ``.npz`` file (arrays and JSON, no pickle); read it with `ncdlib.load`."""
        check_is_fitted(self)
        return write_state(path, *state_of(self))


def write_state(path: str | os.PathLike, meta: dict[str, Any], arrays: dict[str, NDArray]) -> Path:
    """Write what JSON can hold, and arrays, to one file."""
    text = json.dumps(meta | {"ncdlib": version("ncdlib")}, default=_plain_number)
    path = Path(path)
    with atomic_write(path) as file:
        np.savez(file, __meta__=np.array(text), **arrays)
    return path


def load(path: str | os.PathLike) -> Any:
    """Read a model, or the result of a discovery, that ``save`` wrote.

    Raises
    ------
    ValueError
        When the file is none of this package's (nothing in it is executed, whatever it is).

    Examples
    --------
    >>> import tempfile
    >>> from ncdlib import NCDKMeans, load, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> model = NCDKMeans(3, random_state=0).fit(problem.X, problem.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = model.save(f"{folder}/model.npz")
    ...     again = load(path)
    >>> bool((again.predict(problem.X_test_novel) == model.predict(problem.X_test_novel)).all())
    True
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            meta = json.loads(str(data["__meta__"]))
            read = import_module("ncdlib.own_data.archive").unpack if meta["class"] == "Discovery" else from_state
            return read(meta, {name: data[name] for name in data.files if name != "__meta__"})
    except FileNotFoundError:
        raise
    except Exception as error:
        reason = error if isinstance(error, OSError) or zipfile.is_zipfile(path) else "no npz file"
        raise ValueError(f"{os.fspath(path)} is not a model or result saved by ncdlib ({reason})") from error


def state_of(model: Savable) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Take a model apart into what JSON can hold, and arrays; the inverse of `from_state`."""
    if _public_class(type(model).__name__) is not type(model):
        raise TypeError(f"cannot save {type(model).__name__}: ncdlib.load knows ncdlib's own estimators only")
    params = model.get_params(deep=False)
    meta: dict[str, Any] = {"class": type(model).__name__, "params": params, "plain": {}, "nested": {}}
    arrays: dict[str, NDArray] = {}
    for name, value in vars(model).items():
        if name in params:
            continue
        if isinstance(value, Savable):
            meta["nested"][name], inner = state_of(value)
            arrays |= {f"{name}:{key}": array for key, array in inner.items()}
        elif isinstance(value, np.ndarray):
            if value.dtype.kind == "O":
                for other in (v for v in value if not isinstance(v, str)):
                    raise TypeError(
                        f"cannot save {type(model).__name__}: {name} holds a {type(other).__name__}, which would "
                        "come back as text: give labels that are text or plain numbers"
                    )
                value = value.astype(str)
            arrays[name] = value
        elif isinstance(value, dict) and value and all(isinstance(v, np.ndarray) for v in value.values()):
            arrays |= {f"{name}/{key}": array for key, array in value.items()}
        else:
            meta["plain"][name] = value
    for name, value in (meta["params"] | meta["plain"]).items():
        try:
            json.dumps(value, default=_plain_number)
        except TypeError as error:
            raise TypeError(
                f"cannot save {type(model).__name__}: {name}: {error}; give a number, a text or None"
            ) from error
    return meta, arrays


def _public_class(name: str) -> type | None:
    """Return the method or metric of this name, or None: a file may ask for no other class."""
    if name == "KnownClassMetric":
        return import_module("ncdlib.methods.metric").KnownClassMetric  # it imports this module in turn
    return next((method.load() for method in METHODS.values() if method.class_name == name), None)


def from_state(meta: dict[str, Any], arrays: dict[str, NDArray]) -> Savable:
    """Put together what `state_of` took apart."""
    cls = _public_class(meta["class"])
    if not (isinstance(cls, type) and issubclass(cls, Savable)):
        raise TypeError(f"{meta['class']} is no estimator of ncdlib {version('ncdlib')}")
    model = cls(**meta["params"])
    vars(model).update(meta["plain"])
    inner: dict[str, dict[str, NDArray]] = {name: {} for name in meta["nested"]}
    for name, array in arrays.items():
        nested, is_nested, inner_name = name.partition(":")
        owner, is_entry, key = name.partition("/")
        if is_nested:
            inner[nested][inner_name] = array
        elif is_entry:
            vars(model).setdefault(owner, {})[key] = array
        else:
            setattr(model, name, array)
    vars(model).update({name: from_state(meta["nested"][name], inner[name]) for name in inner})
    return model


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} has no JSON form")
