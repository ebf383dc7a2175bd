"""Sources of runs, and the thread that polls them."""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import httpx

from adaexplore.core.errors import AdaExploreError, RecordError
from adaexplore.records import layout
from adaexplore.view.model import Details, RunView
from adaexplore.view.pages import Memory, Shown
from adaexplore.view.run_folder import RunFolder
from adaexplore.view.traces import PackedTraces, is_trace_folder

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
_ASK_JUDGE_EVERY = 4
_DEPTH = 4
"""Folders below ``outputs`` that are searched: ``adaexplore compare`` writes ``outputs/OUT/NAME/seed-N``."""


class Source(Protocol):
    """One run of any format."""

    def refresh(self) -> RunView:
        """Return the current state; the same object if nothing is new."""

    def details(self, key: str, step: int) -> Details:
        """Return all data of one node."""


def open_source(path: Path) -> Source:
    """Open a run folder, a packed trace, or a folder of these.

    Raises:
        RecordError: the path is none of these.
    """
    if path.is_file() or (path.is_dir() and is_trace_folder(path)):
        return PackedTraces(path)
    return RunFolder(path)


def read_all(sources: Sequence[Source]) -> tuple[RunView, ...]:
    """Read runs completely."""
    found = [source.refresh() for source in sources]
    while any(run.loading for run in found):
        found = [source.refresh() for source in sources]
    return tuple(found)


class Watcher(threading.Thread):
    """Polls the runs; ``version`` increases with every change."""

    def __init__(
        self, sources: Sequence[Source], memory: Callable[[], Memory], queue: Callable[[], str] = str
    ) -> None:
        super().__init__(name="view-watcher", daemon=True)
        self.sources = tuple(sources)
        self.version = 0
        self._memory, self._queue = memory, queue
        self._ended = threading.Event()
        self.shown = Shown(tuple(source.refresh() for source in sources), memory())

    def run(self) -> None:
        """Poll until :meth:`end`."""
        turn, queue = 0, ""
        while not self._ended.wait(0.01 if any(run.loading for run in self.shown.runs) else LOOK_EVERY_S):
            if turn % _ASK_JUDGE_EVERY == 0:
                queue = self._queue()
            turn += 1
            try:
                found = Shown(tuple(source.refresh() for source in self.sources), self._memory(), queue)
            except (AdaExploreError, OSError) as error:  # shown as before; the next poll may succeed
                logger.warning("%s", error)
                continue
            if found != self.shown:
                self.shown = found
                self.version += 1

    def end(self) -> None:
        self._ended.set()


def judge_queue(url: str, token: str | None) -> str:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        answer = httpx.get(f"{url.rstrip('/')}/queue/status", headers=headers, timeout=2.0, trust_env=False)
        status = answer.raise_for_status().json()
        queued, working = int(status["total_queued"]), int(status["total_processing"])
    except (httpx.HTTPError, httpx.InvalidURL, KeyError, TypeError, ValueError) as error:
        return f"Judge at {url}: no answer ({type(error).__name__})"
    return f"Judge at {url}: {queued} waiting, {working} being judged"


def default_sources(folder: Path) -> list[Source]:
    """Open the runs below ``folder``, the newest first; warn of those that cannot be opened.

    Raises:
        RecordError: there are none.
    """
    configs = sorted(_configs(folder), key=lambda path: path.stat().st_mtime, reverse=True)
    found = []
    for path in configs:
        try:
            found.append(open_source(path.parent))
        except RecordError as error:
            logger.warning("%s is left out: %s", path.parent, error)
    if not found:
        raise RecordError(f"no run is below {folder}; name a run's save_path")
    return found


def _configs(folder: Path) -> Iterator[Path]:
    """Yield the configurations of the runs at most ``_DEPTH`` folders below ``folder``."""
    for name, below, _ in os.walk(folder):
        depth, config = len(Path(name).relative_to(folder).parts), Path(name) / layout.CONFIG
        is_run = depth > 0 and config.is_file()
        if is_run:
            yield config
        if is_run or depth == _DEPTH:
            below.clear()
