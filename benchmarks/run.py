"""Every claim about speed and memory, measured: each against an honest reference in the same run.

``make bench`` (or ``ncd bench``) prints a table and writes ``benchmarks/results.csv``; ``--quick`` prints it only.
A ratio is the reference's time over ours, measured alternately and repeated; the median counts, the range is shown.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
N_SETS = 20  # hyperparameter sets trained at once


@dataclass(frozen=True)
class Shape:
    """The size of one of the paper's problems."""

    n_known_rows: int
    n_novel_rows: int
    n_features: int
    n_known: int
    n_novel: int

    def make(self, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Gaussian classes of this shape, and their codes (-1 for novel rows)."""
        rng = np.random.default_rng(seed)
        n_classes = self.n_known + self.n_novel
        known = np.arange(self.n_known_rows) % self.n_known
        novel = self.n_known + np.arange(self.n_novel_rows) % self.n_novel
        classes = np.concatenate([known, novel])
        centres = rng.normal(size=(n_classes, self.n_features))
        X = centres[classes] + rng.normal(size=(len(classes), self.n_features))
        return X, np.where(classes < self.n_known, classes, -1)


SHAPES = {
    "Pendigits": Shape(3777, 3717, 16, 5, 5),
    "Letter": Shape(10229, 3770, 16, 19, 7),
    "Optdigits": Shape(1918, 1905, 62, 5, 5),
    "Human": Shape(3733, 3619, 562, 3, 3),
    "CNAE-9": Shape(377, 487, 856, 4, 5),
}


@dataclass
class Result:
    """One measurement: a ratio, a share or an amount, and what it should be."""

    name: str
    median: float
    low: float
    high: float
    unit: str  # "x faster", "GB", "s", "of peak", "exponent"
    target: float | None = None
    at_most: bool = False
    note: str = ""
    group: str = ""

    @classmethod
    def of(cls, name: str, values: float | list[float], unit: str, **more) -> Result:
        values = np.atleast_1d(values)
        return cls(name, float(np.median(values)), float(min(values)), float(max(values)), unit, **more)

    @property
    def met(self) -> str:
        if self.target is None:
            return ""
        return "yes" if (self.median <= self.target if self.at_most else self.median >= self.target) else "MISSED"


def seconds(function: Callable[[], object]) -> float:
    gc.collect()
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def ratio(name: str, ours: Callable, reference: Callable, target: float, repeats: int, *, scale: float = 1.0) -> Result:
    """`scale`: the reference does 1 / scale of the work of ours."""
    ours(), reference()  # warm up
    ratios, times = [], []
    for _ in range(repeats):
        ours_seconds, reference_seconds = seconds(ours), scale * seconds(reference)
        ratios.append(reference_seconds / ours_seconds)
        times.append((ours_seconds, reference_seconds))
    mean_ours, mean_reference = np.median(times, axis=0)
    note = f"{mean_ours:.3g} s against {mean_reference:.3g} s"
    return Result.of(name, ratios, "x faster", target=target, note=note)


def draw_params(method, n_features: int, n: int, **more) -> list[dict]:
    from sklearn.model_selection import ParameterSampler

    sampler = ParameterSampler(method.search_space(n_features), n_iter=n, random_state=0)
    return [{k: v.item() if isinstance(v, np.generic) else v for k, v in p.items()} | more for p in sampler]


def bench_training(repeats: int) -> Iterator[Result]:
    """20 hyperparameter sets by the engine against plain PyTorch, one model at a time."""
    import reference

    from ncdlib import PBN, TabularNCD

    # Two of the sets are enough of the reference where its time is the overhead of each operation. Where it is matrix
    # products, it depends on each set's latent_dim: all are trained. A real training has 200 epochs: the more of them,
    # the less weighs what is done once for each model, as there.
    for method, shape_name, epochs, n_reference, target in (
        (PBN, "Pendigits", 30, 2, 10),
        (PBN, "Letter", 15, 2, 8),
        (PBN, "Optdigits", 12, 2, 3),
        (PBN, "Human", 4, N_SETS, 1.3),
        (PBN, "CNAE-9", 4, N_SETS, 1),
        (TabularNCD, "Pendigits", 3, 2, 10),
    ):
        shape = SHAPES[shape_name]
        X, codes = shape.make()
        params = draw_params(method, shape.n_features, N_SETS)
        estimator = method(n_clusters=shape.n_novel, epochs=epochs, verbose=False)

        def ours(estimator=estimator, X=X, codes=codes, params=params):
            estimator.fit_many(X, codes, params, list(range(len(params))), fit_clusters=False)

        def plain(method=method, X=X, codes=codes, params=params, shape=shape, epochs=epochs, n=n_reference):
            for p in params[:n]:
                extra = {"n_clusters": shape.n_novel} if method is TabularNCD else {}
                reference.train(method.__name__, X, codes, p | extra, epochs=epochs)

        name = f"{method.__name__}, {shape_name}'s shape"
        yield ratio(name, ours, plain, target, repeats, scale=N_SETS / n_reference)


def bench_spectral(repeats: int) -> list[Result]:
    """The embedding of 3,500 rows against scipy's spanning tree and a full eigendecomposition."""
    from scipy.linalg import eigh
    from scipy.sparse.csgraph import minimum_spanning_tree
    from scipy.spatial.distance import pdist, squareform

    from ncdlib import spectral_embedding

    X = SHAPES["Pendigits"].make()[0][:3500]

    def plain():
        distances = squareform(pdist(X))
        sigma = minimum_spanning_tree(distances).data.max() / np.sqrt(-2 * np.log(0.6))
        affinity = np.exp(-(distances**2) / (2 * sigma**2))
        np.fill_diagonal(affinity, 0)
        root = np.sqrt(affinity.sum(axis=1))
        eigh(np.eye(len(X)) - affinity / root / root[:, None])

    name = "spectral embedding, 3,500 rows, 16 components"
    return [ratio(name, lambda: spectral_embedding(X, 16, 0.6), plain, 20, repeats)]


def bench_kmeans(repeats: int) -> list[Result]:
    from sklearn.cluster import KMeans

    from ncdlib import NCDKMeans

    X, codes = SHAPES["Pendigits"].make()
    ours = lambda: NCDKMeans(5, n_init=10, random_state=0).fit(X, codes)  # noqa: E731
    plain = lambda: KMeans(5, n_init=10, random_state=0).fit(X[codes == -1])  # noqa: E731
    return [ratio("NCD k-means against k-means", ours, plain, 1, repeats)]


def bench_validity(repeats: int) -> list[Result]:
    """Silhouettes of many partitions, and the whole sweep over k, against scikit-learn in a loop."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    from ncdlib import estimate_n_clusters
    from ncdlib.clustering.validity import silhouette_scores

    X = np.random.default_rng(0).normal(size=(3700, 12)) + SHAPES["Pendigits"].make()[0][:3700, :12]
    labelings = [KMeans(k, n_init=1, random_state=run).fit(X).labels_ for k in range(2, 31) for run in range(3)]
    few = labelings[:: len(labelings) // 9]
    silhouettes = ratio(
        "silhouettes of k = 2..30 x 3 runs, 3,700 x 12",
        lambda: silhouette_scores(X, labelings),
        lambda: [silhouette_score(X, labels) for labels in few],
        20,
        repeats,
        scale=len(labelings) / len(few),
    )

    def plain_sweep():
        for k in range(2, 31):
            for run in range(3):
                silhouette_score(X, KMeans(k, n_init=10, random_state=run).fit(X).labels_)

    sweep = ratio(
        "the whole sweep over k, 3,700 x 12",
        lambda: estimate_n_clusters(X, "silhouette", range(2, 31), random_state=0),
        plain_sweep,
        1.8,
        max(1, repeats // 2),
    )
    return [silhouettes, sweep]


def bench_search(repeats: int, quick: bool) -> list[Result]:
    """A whole search on both cores against the plain loop on one: training, clustering, silhouettes.

    The target is that of a search of 40 trials, two full stacks. Ten fill half of one, and share each operation's
    overhead among half as many networks: they are measured, but not judged by it.
    """
    import reference
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    from ncdlib import PBN, HiddenClassSearchCV

    n_trials = 10 if quick else 40
    shape = SHAPES["Pendigits"]
    X, codes = shape.make()
    params = draw_params(PBN, shape.n_features, n_trials)
    epochs = 200  # as in the paper

    def ours():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            HiddenClassSearchCV(
                PBN(epochs=epochs),
                PBN.search_space(shape.n_features),
                n_iter=n_trials,
                cv=5,
                n_clusters=shape.n_novel,
                refit=False,
                n_jobs=2,
                verbose=False,
            ).fit(X, codes)

    def plain():
        """One fold of one trial."""
        hidden = np.where(codes == 0, -1, codes)
        network, _ = reference.train("PBN", X, np.where(hidden > 0, hidden - 1, hidden), params[0], epochs=epochs)
        network.eval()
        import torch

        with torch.no_grad():
            z = network.encoder(torch.tensor(X, dtype=torch.float32)).numpy()
        novel = z[codes == -1]
        for k in range(2, 31):
            silhouette_score(novel, KMeans(k, n_init=10, random_state=0).fit(novel).labels_)
        for k in (shape.n_novel + 1, shape.n_novel + 2):
            KMeans(k, n_init=10, random_state=0).fit(z[hidden == -1])

    name = f"search, {n_trials} trials x 5 folds, {epochs} epochs, Pendigits' shape, both cores"
    # The search takes minutes and is timed once; the spread is that of the reference.
    ours_seconds = seconds(ours)
    reference_seconds = [seconds(plain) * n_trials * 5 for _ in range(repeats)]
    note = f"{ours_seconds:.3g} s against {np.median(reference_seconds):.3g} s"
    ratios = [reference / ours_seconds for reference in reference_seconds]
    return [Result.of(name, ratios, "x faster", target=None if quick else 15, note=note)]


def bench_growth(repeats: int, quick: bool) -> list[Result]:
    """Time against rows and columns, with the exponent of a power law."""
    from ncdlib import PBN, NCDSpectralClustering, TabularNCD, estimate_n_clusters

    spectral = "NCD SC"  # keeps all distances: rows have their limit
    results = []
    sizes = (1_000, 4_000, 16_000) if quick else (1_000, 4_000, 16_000, 64_000, 200_000)
    columns = (8, 32, 128)
    jobs = {
        "estimate of k": lambda X, codes: estimate_n_clusters(X[codes == -1], k_range=range(2, 11), random_state=0),
        "PBN, 2 epochs": lambda X, codes: PBN(5, epochs=2, random_state=0, verbose=False).fit(X, codes),
        "TabularNCD, 2 epochs": lambda X, codes: TabularNCD(5, epochs=2, random_state=0, verbose=False).fit(X, codes),
        spectral: lambda X, codes: NCDSpectralClustering(5, s_min=0.6, n_components=16, random_state=0).fit(X, codes),
    }
    for job_name, job in jobs.items():
        for label, shapes in (
            ("rows", [Shape(n // 2, n // 2, 16, 5, 5) for n in sizes if n <= 16_000 or job_name != spectral]),
            ("columns", [Shape(2000, 2000, d, 5, 5) for d in columns]),
        ):
            times, amounts = [], []
            for shape in shapes:
                X, codes = shape.make()
                few = np.r_[:200, len(X) - 200 : len(X)]  # known and novel rows
                job(X[few], codes[few])
                repeated = [seconds(partial(job, X, codes)) for _ in range(repeats)]
                times.append(np.median(repeated))
                amounts.append(len(X) if label == "rows" else X.shape[1])
                results.append(Result.of(f"{job_name}, {amounts[-1]:,} {label}", repeated, "s"))
            exponent = float(np.polyfit(np.log(amounts), np.log(times), 1)[0])
            note = f"{amounts[0]:,} to {amounts[-1]:,}"
            results.append(Result.of(f"{job_name}, growth with {label}", exponent, "exponent", note=note))
    return results


def bench_discover(quick: bool) -> Iterator[Result]:
    """Time a table from the numbers to the report, against rows and columns, and tell where the time goes."""
    rows = [(2_310, 18, 30), (20_000, 18, None)] if quick else [(2_310, 18, 30), (20_000, 30, None), (200_000, 30, 180)]
    columns = [(4_000, d, None) for d in ((8, 32) if quick else (8, 32, 128))]
    for label, shapes, axis in (("rows", rows, 0), ("columns", columns, 1)):
        totals = []
        for n, d, target in shapes:
            took = seconds_of_discover(Shape(n // 2, n // 2, d, 5, 5))
            totals.append(sum(took.values()))
            note = ", ".join(f"{step} {part / totals[-1]:.0%}" for step, part in took.items())
            name = f"discover and report, {n:,} x {d}"
            yield Result.of(name, totals[-1], "s", target=target, at_most=True, note=note)
        amounts = [shape[axis] for shape in shapes]
        exponent = float(np.polyfit(np.log(amounts), np.log(totals), 1)[0])
        note = f"{amounts[0]:,} to {amounts[-1]:,}"
        yield Result.of(f"discover, growth with {label}", exponent, "exponent", note=note)
    if not quick:
        took = seconds_of_discover(Shape(500_000, 500_000, 10, 5, 5))
        yield Result.of("discover and report, 1,000,000 x 10", sum(took.values()), "s")


def seconds_of_discover(shape: Shape) -> dict[str, float]:
    """Seconds of each step of `discover` and of its report."""
    from tempfile import TemporaryDirectory

    from ncdlib.own_data import discover as module

    steps = {"_prepare": "columns", "_set_aside": "known or new", "_fit": "fits", "_explain": "explaining"}
    took = dict.fromkeys([*steps.values(), "report"], 0.0)

    def timed(function: Callable, step: str, *arguments, **options):
        began = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            took[step] += time.perf_counter() - began

    X, codes = shape.make()
    with ExitStack() as patches, TemporaryDirectory() as folder:
        for name, step in steps.items():
            patches.enter_context(patch.object(module, name, partial(timed, getattr(module, name), step)))
        found = module.discover(X, codes, verbose=False)
        timed(found.report, "report", Path(folder, "report.html"))
    return took


def bench_peak_share(repeats: int) -> list[Result]:
    """What part of the machine's matrix-product speed the training reaches where it is bound by it."""
    import torch

    from ncdlib import PBN
    from ncdlib.methods.engine import hidden_widths

    a = torch.randn(1024, 1024)
    peak = max(2 * 1024**3 / seconds(lambda: a @ a) for _ in range(20))
    results = []
    for name in ("Human", "CNAE-9"):
        shape = SHAPES[name]
        X, codes = shape.make()
        d, (wide, narrow) = shape.n_features, hidden_widths(shape.n_features)
        latent = d // 2
        weights = 2 * (d * wide + wide * narrow + narrow * latent)
        products = 2 * (3 * weights - d * wide) * len(X)  # forward, and two backward, but none for the data
        estimator = PBN(shape.n_novel, latent_dim=latent, epochs=1, random_state=0, verbose=False)
        fit = lambda e=estimator, X=X, codes=codes: e.fit_many(X, codes, [{}], [0], fit_clusters=False)  # noqa: E731
        fit()
        shares = [products / seconds(fit) / peak for _ in range(repeats)]
        note = f"peak {peak / 1e9:.0f} GFLOP/s"
        results.append(Result.of(f"PBN, {name}'s shape, matrix products", shares, "of peak", note=note))
    return results


MEMORY_JOBS = {
    "PBN on Human's shape": (
        2.0,
        "from run import SHAPES; from ncdlib import PBN; X, y = SHAPES['Human'].make();"
        "PBN(3, epochs=1, verbose=False).fit(X, y)",
    ),
    "NCD SC on 18,000 rows": (
        6.0,
        "from run import Shape; from ncdlib import NCDSpectralClustering; X, y = Shape(12000, 6000, 67, 12, 6).make();"
        "NCDSpectralClustering(6, s_min=0.6, n_components=18, random_state=0).fit(X, y)",
    ),
    "NCD SC on 18,000 rows, tuning itself": (
        6.0,
        "from run import Shape; from ncdlib import NCDSpectralClustering; X, y = Shape(12000, 6000, 67, 12, 6).make();"
        "NCDSpectralClustering(6, n_iter=2, random_state=0).fit(X, y)",
    ),
    "20 PBNs at once on Human's shape": (
        2.0,
        "from run import SHAPES, draw_params; from ncdlib import PBN; X, y = SHAPES['Human'].make();"
        "PBN(3, epochs=1, verbose=False).fit_many(X, y, draw_params(PBN, 562, 20), list(range(20)))",
    ),
    "TabularNCD on Human's shape": (
        2.0,
        "from run import SHAPES; from ncdlib import TabularNCD; X, y = SHAPES['Human'].make();"
        "TabularNCD(3, epochs=1, verbose=False).fit(X, y)",
    ),
    "discover on 200,000 x 30": (
        2.0,
        "from run import Shape; from ncdlib import discover; X, y = Shape(100_000, 100_000, 30, 5, 5).make();"
        "discover(X, y, verbose=False)",
    ),
    "estimate of k on 200,000 x 50": (
        4.0,
        "import numpy as np; from ncdlib import estimate_n_clusters;"
        "estimate_n_clusters(np.random.default_rng(0).normal(size=(200_000, 50)), k_range=range(2, 6), random_state=0)",
    ),
}


def bench_memory() -> list[Result]:
    """Peak memory of whole jobs, each in a process of its own."""
    results = []
    for name, (target, code) in MEMORY_JOBS.items():
        # The kernel's high-water mark: ru_maxrss would begin at that of this process, which starts the job.
        report = "; print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code + report], capture_output=True, text=True, cwd=HERE, check=True
        )
        gigabytes = int(run.stdout.split()[-1]) / 2**20
        results.append(Result.of(f"peak memory: {name}", gigabytes, "GB", target=target, at_most=True))
    return results


def bench_book() -> list[Result]:
    """Cold and warm build of the book."""
    root = HERE.parent
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    build = [jupyter_book, "build", ".", "-W", "-n", "--keep-going"]
    subprocess.run([jupyter_book, "clean", "--all", "."], cwd=root, capture_output=True, check=True)
    results = []
    for name, target in (("cold", 600.0), ("warm", None)):
        took = seconds(lambda: subprocess.run(build, cwd=root, capture_output=True, check=True))
        results.append(Result.of(f"{name} build of the book", took, "s", target=target, at_most=True))
    return results


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="ncd bench", description="Measure the package's speed and memory.")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, smaller sizes, no build of the book")
    parser.add_argument("--only", default="", help="run only the groups whose name contains this")
    parser.add_argument("-o", "--output", type=Path, help="by default benchmarks/results.csv; with --quick, none")
    options = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"  # for the processes started from here
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    repeats = 3 if options.quick else 5
    groups: dict[str, Callable[[], Iterable[Result]]] = {
        "training": lambda: bench_training(repeats),
        "spectral": lambda: bench_spectral(repeats),
        "kmeans": lambda: bench_kmeans(2 * repeats),
        "validity": lambda: bench_validity(repeats),
        "search": lambda: bench_search(repeats, options.quick),
        "peak": lambda: bench_peak_share(repeats),
        "discover": lambda: bench_discover(options.quick),
        "memory": bench_memory,
        "growth": lambda: bench_growth(repeats, options.quick),
    }
    if not options.quick:
        groups["book"] = bench_book
    groups = {name: group for name, group in groups.items() if options.only in name} or parser.error(
        f"no group has {options.only!r} in its name: choose from {', '.join(groups)}"
    )
    results: list[Result] = []
    print(f"{'what':66} {'median':>9} {'range':>19} {'unit':9} {'target':>8}  met")
    with threadpool_limits(1):
        for name, group in groups.items():
            measured = []
            for r in group():
                r.group = name
                measured.append(r)
                target = "" if r.target is None else f"{'<=' if r.at_most else '>='} {r.target:g}"
                spread = f"{r.low:.3g} to {r.high:.3g}"
                print(
                    f"{r.name:66} {r.median:9.3g} {spread:>19} {r.unit:9} {target:>8}  {r.met:6} {r.note}",
                    flush=True,
                )
            results += measured
            if options.output or not options.quick:  # each group at once: an hour's work is not lost with the last one
                save(measured, options.output or HERE / "results.csv")
    missed = [r.name for r in results if r.met == "MISSED"]
    n_targets = sum(r.target is not None for r in results)
    print(f"{len(results)} measurements, {len(missed)} of {n_targets} targets missed")
    print("".join(f"  missed: {name}\n" for name in missed), end="")
    print(f"peak memory of this run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB")
    return 0


def save(results: list[Result], path: Path) -> None:
    """Put a group's results into the file, in the place of its older ones."""
    from ncdlib._io.files import atomic_write

    provenance = {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "ncdlib": version("ncdlib"),
    }
    rows = pd.DataFrame(
        [
            {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in asdict(r).items()} | {"met": r.met} | provenance
            for r in results
        ]
    )
    if path.is_file():
        others = pd.read_csv(path, dtype=str, keep_default_na=False)
        rows = pd.concat([others[~others["group"].isin(rows["group"])], rows])
    with atomic_write(path) as file:
        rows.to_csv(file, index=False)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped: the groups that were finished are in the file")
