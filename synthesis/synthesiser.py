"""From prompts to a folder of problems: attempts in parallel, kept in their order, never one twice."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from adaexplore.core.errors import Interrupted
from adaexplore.core.files import write_text
from adaexplore.core.identity import source_identity
from adaexplore.core.streams import stream
from adaexplore.core.wire import DtypeName
from adaexplore.judge_client.protocol import Judge
from adaexplore.llm.protocol import ModelClient, ModelRequest, Purpose
from synthesis.catalogue import Catalogue
from synthesis.journal import Journal, Reply
from synthesis.manifest import Entry, Manifest
from synthesis.prompts import Sizes, Style, task_prompt
from synthesis.validation import Finding, Limits, examine, source_of

FAILURES_PER_PROBLEM = 2
"""Times as many attempts as problems may fail before it is given up."""
_FEWEST_FAILURES = 20


@dataclass(frozen=True)
class Order:
    """What is wanted.

    Attributes:
        count: problems that the folder is to hold.
        styles: ways to ask, each attempt draws one.
        sizes: of first inputs.
        limits: of problems.
        dtype: in which they must work.
        seed: of all draws.
        workers: attempts at a time.
    """

    count: int
    styles: tuple[Style, ...] = tuple(Style)
    sizes: Sizes = field(default_factory=lambda: Sizes(2**15, 2**18))
    limits: Limits = field(default_factory=Limits)
    dtype: DtypeName = "fp32"
    seed: int = 0
    workers: int = 1


@dataclass(frozen=True)
class Account:
    """How it went, earlier runs on the same folder included.

    Attributes:
        asked: problems wanted.
        written: problems that the folder holds.
        rejected: attempts that came to nothing, by reason.
        operators: different ones in all problems.
    """

    asked: int
    written: int
    rejected: dict[str, int]
    operators: int


@dataclass(frozen=True)
class _Attempt:
    number: int
    style: Style
    model: str
    source: str
    finding: Finding


class Synthesiser:
    """Fills one folder; ``model`` and ``judge`` are shared by its threads."""

    def __init__(
        self, folder: Path, catalogue: Catalogue, seeds: list[str], model: ModelClient, judge: Judge
    ) -> None:
        """Read what the folder holds.

        Raises:
            UsageError, StorageError: it cannot be read.
        """
        self._folder = folder
        self._catalogue = catalogue
        self._seeds = seeds
        self._model = model
        self._judge = judge
        self._journal = Journal(folder)
        self._manifest = Manifest(folder)

    def fill(
        self, order: Order, stop: threading.Event, progress: Callable[[int], object] = lambda _: None
    ) -> Account:
        """Make problems until there are as many as wanted, or too many attempts failed.

        Which problems come out depends on the seed and the replies, not on the number of workers.

        Args:
            order: what is wanted.
            stop: ends it after what is in flight.
            progress: told the number of problems after each attempt.

        Raises:
            Interrupted: ``stop`` was set.
            ModelError, JudgeError, StorageError: what was finished is kept.
        """
        most = max(FAILURES_PER_PROBLEM * order.count, _FEWEST_FAILURES)
        with self._journal.held(), ThreadPoolExecutor(order.workers) as pool:
            numbers = self._numbers()
            flying: deque[Future[_Attempt]] = deque()
            try:
                while (missing := order.count - len(self._present())) > 0:
                    while len(flying) < min(order.workers, missing):
                        flying.append(pool.submit(self._try, next(numbers), order, stop))
                    if len(self._journal.rejected) >= most:
                        break
                    self._conclude(flying.popleft().result())
                    progress(len(self._present()))
            finally:
                for future in flying:
                    future.cancel()
        return self.account(order.count)

    def account(self, asked: int) -> Account:
        """How it stands."""
        present = self._present()
        operators = {name for entry in present for name in entry.operators}
        return Account(asked, len(present), self._journal.counts(), len(operators))

    def _present(self) -> list[Entry]:
        return [entry for entry in self._manifest.entries if _file(self._folder, entry.id).exists()]

    def _numbers(self) -> Iterator[int]:
        """Attempts that are not over, in their order."""
        over = {entry.attempt for entry in self._present()} | set(self._journal.rejected)
        number = 0
        while True:
            number += 1
            if number not in over:
                yield number

    def _try(self, number: int, order: Order, stop: threading.Event) -> _Attempt:
        if stop.is_set():
            raise Interrupted("stopped; the same command goes on from here")
        rng = stream(order.seed, "synth", number)
        style = rng.choice(order.styles)
        prompt = task_prompt(style, self._catalogue, self._seeds, order.sizes, rng)
        reply = self._journal.replies.get(number)
        if reply is None:
            answer = self._model.complete(ModelRequest(prompt, Purpose.TASK, f"synth/{number}/task"))
            reply = Reply(answer.text, answer.model)
            self._journal.reply(number, reply)
        source = source_of(reply.text)
        if source and not source.endswith("\n"):
            source += "\n"
        finding = examine(self._judge, source, order.dtype, order.limits)
        return _Attempt(number, style, reply.model, source, finding)

    def _conclude(self, attempt: _Attempt) -> None:
        """Keep an attempt or reject it; attempts come in their order."""
        reason, detail = attempt.finding.reason, attempt.finding.detail
        if not reason:
            twin = self._twin(attempt)
            if twin is not None:
                reason, detail = "duplicate", f"computes what {twin}.py computes"
        if reason:
            self._journal.reject(attempt.number, reason, detail)
            return
        number = self._free_id(attempt.source)
        write_text(_file(self._folder, number), attempt.source)
        self._manifest.add(
            Entry(
                id=number,
                attempt=attempt.number,
                style=attempt.style.value,
                model=attempt.model,
                operators=self._catalogue.operators_in(attempt.source),
                hash=hashlib.sha256(attempt.source.encode()).hexdigest(),
                graph=attempt.finding.graph,
                elements=attempt.finding.elements,
            )
        )

    def _twin(self, attempt: _Attempt) -> int | None:
        """The problem that has the same operators, connections and shapes, or the same program."""
        identity = source_identity(attempt.source)
        for entry in self._present():
            if entry.graph == attempt.finding.graph:
                return entry.id
            if source_identity(_read(_file(self._folder, entry.id))) == identity:
                return entry.id
        return None

    def _free_id(self, source: str) -> int:
        """The number of a file that holds this very problem and is not listed, else the next free one."""
        listed = {entry.id for entry in self._manifest.entries}
        number = 1
        while (path := _file(self._folder, number)).exists() or number in listed:
            if number not in listed and _read(path) == source:
                return number
            number += 1
        return number


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number}.py"


def _read(path: Path) -> str:
    """The file; one that is no UTF-8 text is no problem of this program, and equals none."""
    return path.read_text(encoding="utf-8", errors="surrogateescape")
