"""A mailbox run by the real command, which the tests kill with SIGKILL and start again.

Its prompts are answered by :class:`Answers`: a large step gets a kernel, a small step an edit of it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from adaexplore.core.draft import request_name
from adaexplore.records.run_records import RunRecords

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 0.5 + 0.25


def get_inputs():
    return [torch.randn({rows}, {columns})]


def get_init_inputs():
    return []
"""
KERNEL = """import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scaled_relu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, tl.maximum(x, 0.0) * 0.5 + 0.25, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        block = 512
        scaled_relu[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), BLOCK=block)
        return y
"""
_BLOCK = re.compile(r"^ {8}block = (\d+)$", re.MULTILINE)
_LONGEST_S = 240.0


def answer_to(prompt: str) -> str:
    """Return a kernel with a larger block than all shown ones, as a file or as an edit of the last kernel."""
    shown = [int(size) for size in _BLOCK.findall(prompt)]
    size = max(shown) * 2 if shown else 256
    if "## Now: edits" not in prompt:
        return f"```python\n{KERNEL.replace('block = 512', f'block = {size}')}```\n"
    edited = _BLOCK.findall(prompt.partition("## Your reply")[0])[-1]
    old, new = f"        block = {edited}", f"        block = {size}"
    return f"<old_str_1>\n{old}\n</old_str_1>\n<new_str_1>\n{new}\n</new_str_1>\n"


class MailboxRun:
    """The sessions of one run, with its own mailbox; ``starts`` and ``kills`` are counted."""

    def __init__(self, folder: Path, *settings: str, rows: int = 8, columns: int = 16) -> None:
        self.folder = folder
        self.starts = self.kills = 0
        self.log = folder.with_name("sessions.log")
        self._prompts, self._answers = folder / "mailbox/prompts", folder / "mailbox/answers"
        problem = folder.with_name("problem.py")
        problem.write_text(PROBLEM.format(rows=rows, columns=columns))
        chosen = [
            f"save_path={folder}",
            "preset=default",
            "server_type=mailbox",
            "mailbox_wait_s=600",
            "general_memory_path=null",
            "tune_s=0",
            *settings,
        ]
        self._command = [sys.executable, "-m", "adaexplore", "run", "--task", str(problem)]
        self._command += [text for setting in chosen for text in ("--set", setting)]

    @property
    def key(self) -> str:
        return "0_problem"

    def start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with self.log.open("ab") as log:
            return subprocess.Popen(self._command, cwd=ROOT, stdout=log, stderr=log, env={**os.environ})

    def killed_when(self, reached: Callable[[], bool]) -> None:
        """Run a session until ``reached``, then kill it."""
        process = self.start()
        try:
            self._wait(process, reached)
        finally:
            process.kill()
            process.wait()
        self.kills += 1

    def to_the_end(self) -> int:
        """Run a session in which each prompt is answered at once; return its exit code."""
        process = self.start()
        try:
            self._wait(process, lambda: self.answer() and False, ended=True)
        finally:
            process.kill()
        return process.wait()

    def waiting(self) -> list[Path]:
        """Return the prompts without an answer."""
        found = sorted(self._prompts.glob("*.md"))
        return [path for path in found if not (self._answers / path.name).exists()]

    def answer(self) -> bool:
        """Answer what waits; return True."""
        for prompt in self.waiting():
            draft = self._answers.parent / "draft"
            draft.write_text(answer_to(prompt.read_text()))
            draft.rename(self._answers / prompt.name)
        return True

    def steps(self) -> int:
        return RunRecords(self.folder).task(self.key).step_count()

    def replies(self) -> int:
        """Return how many replies the run took so far, in all sessions."""
        return len(RunRecords(self.folder).usage())

    def prompts(self) -> list[str]:
        """Return the key of each prompt in the mailbox; one that was asked twice is there twice."""
        return sorted(path.name.rsplit(".", 2)[0] for path in self._prompts.glob("*.md"))

    def answers(self) -> list[tuple[str, str]]:
        """Return the key of each answered prompt, and the answer."""
        found = self._answers.glob("*.md")
        return sorted((path.name.rsplit(".", 2)[0], path.read_text()) for path in found)

    def used(self) -> list[tuple[str, str]]:
        """Return the key of each recorded request, and the reply that its step used."""
        found = []
        for step in RunRecords(self.folder).task(self.key).steps():
            earlier: list[str] = []
            for each in step.draft.exchanges:
                name = request_name(each.purpose, earlier)
                found.append((f"{self.key}.{step.node.plan.step}.{name}", each.reply))
                earlier.append(each.purpose)
        return sorted(found)

    def figures(self) -> dict[str, int]:
        """Return what a run has to show: used answers, and prompts that were asked a second time."""
        prompts, used = self.prompts(), self.used()
        return {
            "starts": self.starts,
            "kills": self.kills,
            "steps": self.steps(),
            "prompts": len(prompts),
            "asked_twice": len(prompts) - len(set(prompts)),
            "answers": len(self.answers()),
            "answers_used": sum(answer in used for answer in self.answers()),
        }

    def _wait(
        self, process: subprocess.Popen[bytes], reached: Callable[[], bool], ended: bool = False
    ) -> None:
        until = time.monotonic() + _LONGEST_S
        while not reached():
            if process.poll() is not None:
                assert ended, f"the session ended with {process.returncode}:\n{self.log.read_text()[-3000:]}"
                return
            assert time.monotonic() < until, f"too slow:\n{self.log.read_text()[-3000:]}"
            time.sleep(0.01)


def kill_four_times(run: MailboxRun) -> None:
    """Kill a new run four times, twice before its first step is recorded; then run it to the end.

    It is killed while the first prompt waits, while its answer is judged, while the next prompt waits,
    and while the answer to that is judged.
    """
    run.killed_when(lambda: bool(run.waiting()))
    assert run.steps() == 0
    run.answer()
    run.killed_when(lambda: run.replies() == 1)
    assert run.steps() == 0
    run.killed_when(lambda: bool(run.waiting()))
    assert run.steps() == 1
    run.answer()
    begun = run.replies()
    run.killed_when(lambda: run.replies() > begun)
    assert run.steps() == 1
    assert run.to_the_end() == 0, run.log.read_text()[-3000:]
    assert (run.starts, run.kills) == (5, 4)
