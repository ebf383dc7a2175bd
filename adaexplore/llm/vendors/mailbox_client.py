"""Use a folder as a model: prompts and answers are files."""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from pathlib import Path

from adaexplore.core.errors import AnswersPending, ConfigError, Interrupted, StorageError
from adaexplore.core.files.atomic import write_text
from adaexplore.core.files.inputs import regular_bytes
from adaexplore.core.text.figures import first_difference
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest
from adaexplore.llm.vendors.vendor import Opening, Vendor
from adaexplore.settings.paths import expanded

logger = logging.getLogger(__name__)

_POLL_S = 0.2
_SHOWN_CHARS = 100


class MailboxClient:
    """Writes ``prompts/ID.md`` and reads ``answers/ID.md``, which must appear in one piece.

    The id is the request's key with a digest of ``run`` and its text. A repeated request, in this session
    or a later one, finds its own prompt and answer, even if measured figures in the prompt have changed (see
    :func:`~adaexplore.core.text.figures.first_difference`). No file is ever deleted. A request gives up
    after ``wait_s`` without any new answer, or when ``stop`` is set.

    ``run`` is the id of a run, if several may use the folder: answers to the prompts of others do not count.
    """

    def __init__(
        self,
        folder: Path,
        *,
        wait_s: float,
        run: str = "",
        stop: threading.Event | None = None,
    ) -> None:
        self._prompts = folder / "prompts"
        self._answers = folder / "answers"
        self._run = run
        self._wait_s = wait_s
        self._stop = stop or threading.Event()
        self._last_answer = time.monotonic()

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request from its file; tokens and price are unknown.

        Raises:
            AnswersPending: no answer arrived in time; the prompt stays.
            Interrupted: ``stop`` was set.
            StorageError: a file cannot be read or written.
        """
        begun = time.monotonic()
        try:
            self._answers.mkdir(parents=True, exist_ok=True)
            names = self._asked(request)
            if not names:
                names = [self._name(request)]
                write_text(self._prompts / names[0], request.transcript)
            text = self._wait([self._answers / name for name in names], begun)
        except OSError as error:
            raise StorageError(
                f"cannot use {error.filename}: {error.strerror}; change mailbox_path"
            ) from error
        usage = Usage(seconds=time.monotonic() - begun, usd=None)
        return ModelReply(text, Finish.COMPLETE, usage, "mailbox")

    def _name(self, request: ModelRequest) -> str:
        digest = _digest(request.transcript.encode("utf-8", "replace"), self._run)
        return f"{_stem(request)}.{digest}.md"

    def _asked(self, request: ModelRequest) -> list[str]:
        """Return the names of this run's prompts that ask the same; warn if others have its key instead."""
        now, plain, name = request.transcript, request.plain_transcript, self._name(request)
        same = [name] if (self._prompts / name).exists() else []
        others: list[tuple[int, str]] = []
        for path in sorted(self._prompts.glob(f"{_stem(request)}.*.md")):
            content, digest = regular_bytes(path), path.name.split(".")[-2]
            earlier = content.decode("utf-8", "replace")
            line = first_difference(earlier, now, plain)
            if digest not in (_digest(content, self._run), _digest(content, "")):
                if line is None and path.name != name and _text(self._answers / path.name).strip():
                    others.append((0, f"the answer to {path.name} is another run's"))
            elif line is not None:
                was, told = _line(earlier, line), _line(now, line)
                others.append((line, f"line {line} of {path.name} is {was!r}, now it is {told!r}"))
            elif path.name != name:
                same.append(path.name)
        if others and not same:
            logger.warning("%s is asked again: %s", request.key, max(others)[1])
        return same

    def _wait(self, answers: list[Path], begun: float) -> str:
        while not (text := next(filter(str.strip, map(_text, answers)), "")):
            if self._stop.is_set():
                raise Interrupted("stopped while waiting for an answer; run the same command to continue")
            if time.monotonic() - max(begun, self._last_answer) >= self._wait_s:
                raise self._pending()
            self._stop.wait(_POLL_S)
        self._last_answer = time.monotonic()
        return text

    def _pending(self) -> AnswersPending:
        waiting = sum(not _text(self._answers / path.name).strip() for path in self._prompts.glob("*.md"))
        told = "1 prompt waits" if waiting == 1 else f"{waiting} prompts wait"
        return AnswersPending(
            f"{told} in {self._prompts}; write the answers to {self._answers}, "
            "each under the name of its prompt",
            waiting,
        )


def _stem(request: ModelRequest) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", ".", request.key)[:150]


def _digest(prompt: bytes, run: str) -> str:
    """Return the digest in a prompt's name; earlier versions always wrote it without a run."""
    asker = f"{run}\0".encode() if run else b""
    return hashlib.blake2b(asker + prompt, digest_size=6).hexdigest()


def _line(text: str, number: int) -> str:
    """Return the start of a line, counted from 1; "" if the text is shorter."""
    return next(iter(text.split("\n")[number - 1 :]), "")[:_SHOWN_CHARS]


def _text(answer: Path) -> str:
    """Return the answer; "" if there is none yet."""
    try:
        return regular_bytes(answer).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _open(opening: Opening) -> MailboxClient:
    config, folder, run = opening.config, opening.mailbox, ""
    if config.mailbox_path is not None:
        folder, run = expanded(config.mailbox_path), opening.run
    if folder is None:
        raise ConfigError("server_type mailbox needs mailbox_path: a folder for prompts and answers")
    return MailboxClient(folder, wait_s=config.mailbox_wait_s, run=run, stop=opening.stop)


VENDOR = Vendor(
    names=("mailbox",),
    about="people, agents or batch queues, by files",
    needs="nothing",
    open=_open,
    cost="unknown",
)
