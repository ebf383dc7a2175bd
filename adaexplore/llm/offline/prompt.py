"""What the writer reads in a prompt: the reference, shown kernels with their verdicts, rules."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adaexplore.core.differences import apply_differences
from adaexplore.core.verdict import Status
from adaexplore.llm.offline.choices import leaves_numbers

_FENCE = re.compile(
    r"(?:^Kernel (?P<base>\d+) with these changes:\n)?"
    r"^(?P<ticks>`{3,})(?:python|diff)?[ \t]*\n(?P<source>.*?)^(?P=ticks)[ \t]*$",
    re.M | re.S,
)
_VERDICT = re.compile(
    r"\s*^Verdict: (?P<status>\w+)(?:, (?P<speedup>[\d.]+)x)?(?P<rest>.*?)(?=^#|^`{3,}|\Z)", re.M | re.S
)
_RULE = re.compile(r"^- (You cannot .*)$", re.M)


@dataclass(frozen=True)
class Shown:
    """A kernel in a prompt; ``status`` is the verdict's word, ``speedup`` is None where not measured."""

    source: str
    status: str
    speedup: float | None
    feedback: str

    @property
    def failed(self) -> bool:
        """Whether the judge found it wrong."""
        return self.status != Status.PASSED.value and self.status in {status.value for status in Status}


@dataclass(frozen=True)
class Reading:
    """A prompt taken apart.

    Attributes:
        reference: None where no module to replace is shown.
        sweeps: whether numbers may be left to the judge.
    """

    reference: str | None
    kernels: tuple[Shown, ...]
    rules: tuple[str, ...]
    sweeps: bool = False


def read_prompt(prompt: str) -> Reading:
    """Take ``prompt`` apart by its fences, verdict lines and rules."""
    references: list[str] = []
    kernels: list[Shown] = []
    sweeps = False
    for block in _FENCE.finditer(prompt):
        source = block["source"]
        if block["base"] is not None:
            source = apply_differences(kernels[int(block["base"])].source, source)
        verdict = _VERDICT.match(prompt, block.end())
        if re.search(r"^class ModelNew\b", source, re.M):
            if verdict is None:  # a worked answer
                continue
            speedup = None if verdict["speedup"] is None else float(verdict["speedup"])
            kernels.append(Shown(source, verdict["status"], speedup, verdict["rest"].strip()))
        elif verdict is not None:
            kernels.append(Shown(source, verdict["status"], None, verdict["rest"].strip()))
        elif re.search(r"^class Model\b", source, re.M):
            references.append(source)
        else:
            sweeps = sweeps or leaves_numbers(source)
    whole = [source for source in references if "def get_inputs" in source]
    reference = next(reversed(whole or references), None)
    return Reading(reference, tuple(kernels), tuple(_RULE.findall(prompt)), sweeps)
