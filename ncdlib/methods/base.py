"""What every estimator of the package shares: reading (X, y), and saving a fitted model without pickle."""

from __future__ import annotations

import json
import os
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ncdlib._io.checks import check_index, check_n_clusters, check_rows, encode_labels, min_known_classes
from ncdlib._io.files import atomic_write
from ncdlib.clustering.validity import INDICES
from ncdlib.problem import UNLABELED


class NCDEstimator(ClusterMixin, BaseEstimator):
    """Base of all estimators: ``fit(X, y)`` where ``y == -1`` marks the rows to discover classes in.

    After fit, ``labels_`` has one entry a row: the cluster of each unlabelled row, and -1 for labelled rows
    (they belong to a known class, not to a cluster).

    The same data and ``random_state`` give the same result to the last bit, on one machine and with the same number of
    threads. With another number of threads, sums are added up in another order: the learned space differs in its last
    bits, and now and then a row is in another cluster. ``OMP_NUM_THREADS=1``, set before Python starts, rules that out.

    Examples
    --------
    A method of one's own that puts every unlabelled row into the same cluster:

    >>> import numpy as np
    >>> from ncdlib.methods.base import NCDEstimator
    >>> class OneCluster(NCDEstimator):
    ...     def __init__(self, n_clusters=1):
    ...         self.n_clusters = n_clusters
    ...
    ...     def fit(self, X, y):
    ...         X, codes = self._check_fit(X, y)
    ...         self.labels_ = np.where(codes == -1, 0, -1)
    ...         return self
    >>> OneCluster().fit_predict([[0.0], [1.0], [2.0], [3.0]], [7, 8, -1, -1])
    array([-1, -1,  0,  0])
    """

    _precision: ClassVar[DTypeLike] = np.float64  # of the computation

    def _check_fit(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray, NDArray[np.int64]]:
        """Validate training data; set ``classes_``; return X as floats and the label codes."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "give the known labels, and -1 for the rows to discover classes in"
            )
        X = check_rows(X, self, min_rows=2, precision=self._precision)
        codes, classes = encode_labels(y)
        check_consistent_length(X, codes)
        n_unlabeled = int(np.sum(codes == UNLABELED))
        if n_unlabeled == 0:
            raise ValueError("y has no unlabelled row: mark the rows to discover classes in with -1")
        if len(classes) == 0:
            raise ValueError("y has no labelled row: novel class discovery learns from known classes; label some rows")
        if len(classes) < min_known_classes.get():
            raise ValueError(f"y has a single known class ({str(classes[0])!r}): at least two are needed to learn from")
        self._check_n_clusters(n_unlabeled)
        self.classes_ = classes
        return X, codes

    def _check_n_clusters(self, n_rows: int) -> None:
        if isinstance(self.n_clusters, str):
            check_index(self.n_clusters, INDICES)
        else:
            allowed = "a positive integer or the name of a validity index"
            check_n_clusters(self.n_clusters, n_rows, rows="unlabelled rows", allowed=allowed)

    def _check_new(self, X: ArrayLike) -> NDArray:
        """Validate rows given to a fitted model."""
        check_is_fitted(self)
        return check_rows(X, self, fitting=False, precision=self._precision)

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.int64]:
        """Fit, and return ``labels_``: a cluster for each unlabelled row, -1 for labelled rows."""
        return self.fit(X, y).labels_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The model as what JSON can hold, and arrays; the inverse of `_from_state`."""
        params = self.get_params(deep=False)
        meta: dict[str, Any] = {"class": type(self).__name__, "params": params, "plain": {}, "nested": {}}
        arrays: dict[str, NDArray] = {}
        for name, value in vars(self).items():
            if name in params:
                continue
            if isinstance(value, NCDEstimator):
                meta["nested"][name], inner = value._state()
                arrays |= {f"{name}:{key}": array for key, array in inner.items()}
            elif isinstance(value, np.ndarray):
                if value.dtype.kind == "O":
                    for other in (v for v in value if not isinstance(v, str)):
                        raise TypeError(
                            f"cannot save {type(self).__name__}: {name} holds a {type(other).__name__}, which would "
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
                    f"cannot save {type(self).__name__}: {name}: {error}; give a number, a text or None"
                ) from error
        return meta, arrays

    def save(self, path: str | os.PathLike) -> Path:
        """Write the fitted model to one ``.npz`` file (arrays and JSON, no pickle); read it with `ncdlib.load`."""
        check_is_fitted(self)
        if _public_class(type(self).__name__) is not type(self):
            raise TypeError(f"cannot save {type(self).__name__}: ncdlib.load knows ncdlib's own estimators only")
        meta, arrays = self._state()
        meta["ncdlib"] = version("ncdlib")
        text = json.dumps(meta, default=_plain_number)
        path = Path(path)
        with atomic_write(path) as file:
            np.savez(file, __meta__=np.array(text), **arrays)
        return path


def _public_class(name: str) -> Any:
    """What ncdlib has under this name, or None: the public estimators are the only classes a file may ask for."""
    import ncdlib

    return getattr(ncdlib, name, None)


def _from_state(meta: dict[str, Any], arrays: dict[str, NDArray]) -> NCDEstimator:
    cls = _public_class(meta["class"])
    if not (isinstance(cls, type) and issubclass(cls, NCDEstimator)):
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
    vars(model).update({name: _from_state(meta["nested"][name], inner[name]) for name in inner})
    return model


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def load(path: str | os.PathLike) -> NCDEstimator:
    """Read a model that ``save`` wrote.

    Raises
    ------
    ValueError
        When the file is not a model of this package (nothing in it is executed, whatever it is).

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
            return _from_state(meta, {name: data[name] for name in data.files if name != "__meta__"})
    except FileNotFoundError:
        raise
    except Exception as error:
        reason = error if isinstance(error, OSError) or zipfile.is_zipfile(path) else "no npz file"
        raise ValueError(f"{os.fspath(path)} is not a model saved by ncdlib ({reason})") from error
