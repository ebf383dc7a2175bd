"""Use a folder as a model: prompts and answers are files."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from pathlib import Path

from adaexplore.core.errors import AnswersPending, Interrupted, StorageError
from adaexplore.core.files.atomic import write_text
from adaexplore.core.files.inputs import regular_bytes
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest

_POLL_S = 0.2


class MailboxClient:
    """Writes ``prompts/ID.md`` and reads ``answers/ID.md``, which must appear in one piece.

    The id is the request's key with a digest of its text: a repeated request, in this session or a later
    one, finds its own prompt and answer. No file is ever deleted. A request gives up after ``wait_s`` without
    any new answer, or when ``stop`` is set.
    """

    def __init__(
        self,
        folder: Path,
        *,
        wait_s: float,
        stop: threading.Event | None = None,
    ) -> None:
        self._prompts = folder / "prompts"
        self._answers = folder / "answers"
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
        begun, name = time.monotonic(), _name(request)
        try:
            self._answers.mkdir(parents=True, exist_ok=True)
            if not (self._prompts / name).exists():
                write_text(self._prompts / name, request.transcript)
            text = self._wait(self._answers / name, begun)
        except OSError as error:
            raise StorageError(
                f"cannot use {error.filename}: {error.strerror}; change mailbox_path"
            ) from error
        usage = Usage(seconds=time.monotonic() - begun, usd=None)
        return ModelReply(text, Finish.COMPLETE, usage, "mailbox")

    def _wait(self, answer: Path, begun: float) -> str:
        while not (text := _text(answer)).strip():
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


def _name(request: ModelRequest) -> str:
    digest = hashlib.blake2b(request.transcript.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '.', request.key)[:150]}.{digest}.md"


def _text(answer: Path) -> str:
    """Return the answer; "" if there is none yet."""
    try:
        return regular_bytes(answer).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
