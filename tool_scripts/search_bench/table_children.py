"""Child processes of ``time_kernel_table.py``, a limit on the wait for them, and what is recorded already."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tool_scripts.search_bench.table import point_of, read_records
from tool_scripts.search_bench.templates.space import Point

_ROOT = Path(__file__).resolve().parents[2]
_START_S = 120.0


class ChildLost(Exception):
    """The child died or said nothing for too long."""


class Child:
    """A ``table_worker`` that answers orders until it is closed."""

    def __init__(self, mode: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tool_scripts.search_bench.table_worker", mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=_ROOT,
            start_new_session=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.about: Mapping[str, Any] = self._answer(_START_S)["about"]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _answer(self, wait_s: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=wait_s)
        except queue.Empty:
            raise ChildLost(f"silent for {wait_s:g} s") from None
        if line is None:
            raise ChildLost(f"died with code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, order: Mapping[str, Any], wait_s: float) -> Iterator[dict[str, Any]]:
        """The answers to one order; raises ChildLost when none comes within ``wait_s``."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise ChildLost("died between two orders") from None
        while not (answer := self._answer(wait_s)).get("end"):
            yield answer

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # with the assembler that it may have started
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


def order_of(point: Point) -> dict[str, Any]:
    """A point as an order or a record holds it."""
    return {
        "family": point.family,
        "shape": list(point.shape),
        "structure": point.structure,
        "choices": dict(point.choices),
    }


def keys_in(path: Path) -> set[str]:
    """The keys of the points that a record file holds."""
    return {point_of(data).key for data in read_records(path) if "structure" in data}
