"""Processes: one thread in each, an end with the one that started them, and Ctrl-C for that one alone."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import current_process, resource_tracker
from typing import Any

from joblib import Parallel
from threadpoolctl import threadpool_limits

POOL_THREAD = "ExecutorManagerThread"  # of joblib's loky


@contextmanager
def one_thread() -> Iterator[None]:
    """Let numerical libraries use one thread.

    For many small models, one process for each core, with one thread each, beats threads, which would wait on each
    other. And a sum is the same to the last bit whatever the number of threads allowed.
    """
    torch = sys.modules.get("torch")
    n_threads = torch.get_num_threads() if torch else None
    if torch:
        torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        if torch:
            torch.set_num_threads(n_threads)


def end_with_parent() -> None:
    """Let a worker process end when the one that started it is killed, which has no time to stop it."""
    watch = "end with parent"
    if current_process().name.startswith("LokyProcess") and watch not in {t.name for t in threading.enumerate()}:
        threading.Thread(target=_exit_without, args=(os.getppid(),), name=watch, daemon=True).start()


def _exit_without(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


@contextmanager
def as_they_come(jobs: Iterable[Any], n_jobs: int | None, **options: Any) -> Iterator[Iterator[Any]]:
    """Give the results of joblib's delayed calls in the order in which they are there.

    Ctrl-C goes to a terminal's processes all at once. Here the workers are started deaf to it: a worker that is still
    importing, or waits for work, would print a traceback of its own. This process hears it, and stops them.

    Examples
    --------
    >>> from joblib import delayed
    >>> from ncdlib._io.processes import as_they_come
    >>> with as_they_come((delayed(abs)(-n) for n in range(3)), n_jobs=1) as results:
    ...     sorted(results)
    [0, 1, 2]
    """
    hook = threading.excepthook
    try:
        with ExitStack() as stack:
            with _ctrl_c_held_back():
                results = Parallel(n_jobs=n_jobs, return_as="generator_unordered", **options)(jobs)
                # After an exception, also one that was held back: workers stop now, not when nobody refers to the
                # generator any more.
                stack.enter_context(closing(results))
                stack.push(_quiet_the_pool)
            yield results
    except BaseException:
        # The pool's semaphores go now, too: freed while the interpreter ends, they may be reported as leaked.
        gc.collect()
        for thread in _pool_threads():
            thread.join(timeout=5)
        threading.excepthook = hook
        raise


def _pool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(POOL_THREAD)]


def _quiet_the_pool(kind: type[BaseException] | None, *_: Any) -> None:
    """Before a pool is stopped in the middle: its own thread may miss the work that is being taken from it."""
    if kind is not None:
        hook = threading.excepthook
        threading.excepthook = lambda failed: None if failed.thread.name.startswith(POOL_THREAD) else hook(failed)


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Block SIGINT: what is started inherits that; for this thread, one that comes meanwhile arrives at the end."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # it would lift the block when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
