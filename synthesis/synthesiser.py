"""Fill a folder with problems: attempts run in parallel, are stored in order, and never repeat."""

import hashlib
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from adaexplore.core.errors import Interrupted
from adaexplore.core.files.atomic import write_text
from adaexplore.core.files.inputs import regular_bytes
from adaexplore.core.plan import Purpose
from adaexplore.core.replies.answers import answer_in
from adaexplore.core.replies.programs import program_in
from adaexplore.core.streams import stream
from adaexplore.core.text.identity import source_identity
from adaexplore.core.wire import DtypeName
from adaexplore.judge_client.protocol import Judge
from adaexplore.llm.protocol import ModelClient, ModelRequest
from synthesis.catalogue import Catalogue
from synthesis.journal import Journal, Reply
from synthesis.manifest import Entry, Manifest
from synthesis.prompts import Sizes, Style, draw_task, task_prompt
from synthesis.validation import Finding, examine

FAILURES_PER_PROBLEM = 2
"""Failed attempts per wanted problem before giving up."""
_FEWEST_FAILURES = 20


@dataclass(frozen=True)
class Order:
    """The request for a set."""

    count: int  # number of problems in the finished folder
    styles: tuple[Style, ...] = tuple(Style)  # styles of requests; each attempt draws one
    sizes: Sizes = field(default_factory=lambda: Sizes(2**15, 2**18))
    dtype: DtypeName = "fp32"  # the dtype in which problems must work
    seed: int = 0
    workers: int = 1  # number of parallel attempts


@dataclass(frozen=True)
class Account:
    """The result so far, including earlier runs on the same folder."""

    asked: int  # number of wanted problems
    written: int  # number of problems in the folder
    rejected: dict[str, int]  # number of rejected attempts, by reason
    operators: int  # number of different operators in all problems


@dataclass(frozen=True)
class _Attempt:
    number: int
    style: Style
    model: str
    source: str
    finding: Finding


class Synthesiser:
    """A synthesiser for one folder; its threads share ``model`` and ``judge``."""

    def __init__(
        self, folder: Path, catalogue: Catalogue, seeds: list[str], model: ModelClient, judge: Judge
    ) -> None:
        """Read the existing folder.

        Raises:
            StorageError: the folder cannot be read.
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
        """Make problems until there are enough, or too many attempts failed.

        The problems depend on the seed and the replies, not on the number of workers.

        Args:
            order: the request.
            stop: an event; when set, no new attempt starts.
            progress: called with the number of problems after each attempt.

        Raises:
            Interrupted: ``stop`` was set.
            ModelError, JudgeError, StorageError: finished problems are kept.
        """
        most = max(FAILURES_PER_PROBLEM * order.count, _FEWEST_FAILURES)
        with self._journal.held(), ThreadPoolExecutor(order.workers) as pool:
            over = {entry.attempt for entry in self._present()} | set(self._journal.rejected)
            numbers = (number for number in count(1) if number not in over)
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
        present = self._present()
        operators = {name for entry in present for name in entry.operators}
        return Account(asked, len(present), self._journal.counts(), len(operators))

    def _present(self) -> list[Entry]:
        return [entry for entry in self._manifest.entries if _file(self._folder, entry.id).exists()]

    def _try(self, number: int, order: Order, stop: threading.Event) -> _Attempt:
        if stop.is_set():
            raise Interrupted("stopped; the same command continues from here")
        rng = stream(order.seed, "synth", number)
        style = rng.choice(order.styles)
        data = draw_task(self._catalogue, order.sizes, rng)
        prompt = task_prompt(style, data, self._seeds, rng)
        reply = self._journal.replies.get(number)
        if reply is None:
            request = ModelRequest(prompt, Purpose.TASK, f"synth/{number}/task", data=data)
            answer = self._model.complete(request)
            reply = Reply(answer.text, answer.model)
            self._journal.reply(number, reply)
        program = program_in(answer_in(reply.text), "Model")
        source = program.source if program else ""
        if source and not source.endswith("\n"):
            source += "\n"
        finding = examine(self._judge, source, order.dtype)
        return _Attempt(number, style, reply.model, source, finding)

    def _conclude(self, attempt: _Attempt) -> None:
        """Accept or reject an attempt; attempts arrive in order."""
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
        """Return a problem with the same operators, connections and shapes, or with the same program."""
        identity = source_identity(attempt.source)
        for entry in self._present():
            if entry.graph == attempt.finding.graph:
                return entry.id
            if source_identity(_read(_file(self._folder, entry.id))) == identity:
                return entry.id
        return None

    def _free_id(self, source: str) -> int:
        """Return the number of an unlisted file with this problem, else the next free number."""
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
    """Read a file; a file that is not UTF-8 was not made here and equals no problem."""
    return regular_bytes(path).decode("utf-8", "surrogateescape")
