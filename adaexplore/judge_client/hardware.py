"""The GPU that prompts name."""

import re

from adaexplore.core.wire import words
from adaexplore.judge_client.protocol import JudgeIdentity

_GENERIC = {"nvidia", "gpu", "geforce", "rtx", "tesla", "quadro", "graphics", "pcie", "sxm", "sxm4", "sxm5"}
_ARCHITECTURES = {7: "Volta or Turing", 8: "Ampere", 9: "Hopper", 10: "Blackwell", 12: "Blackwell"}
_BY_NAME = (
    ("Blackwell", ("b100", "b200", "gb200", "b300", "gb300", "5090", "5080")),
    ("Hopper", ("h100", "h200", "gh200", "h800", "h20")),
    ("Ada Lovelace", ("l40s", "l40", "l4", "4090", "4080", "ada")),
    ("Ampere", ("a100", "a800", "a10", "a10g", "a30", "a40", "a6000", "a5000", "a4000", "3090", "3080")),
    ("Turing", ("t4", "2080")),
    ("Volta", ("v100",)),
)


def prompt_hardware(
    gpu_name: str, gpu_architecture: str | None, judge: JudgeIdentity, compile_target: str
) -> tuple[str, str]:
    """Return name and architecture of the GPU that prompts name.

    ``auto`` is the judge's GPU; without one, the GPU for which the judge compiles.
    """
    if gpu_name != "auto":
        return gpu_name, gpu_architecture or _architecture_of(gpu_name)
    if judge.device == "cuda":
        return judge.hardware, gpu_architecture or _architecture_of(judge.hardware)
    digits = re.sub(r"\D", "", compile_target)
    major = int(digits[:-1] or 0)
    name = f"NVIDIA GPU of compute capability {major}.{digits[-1:]}"
    return name, gpu_architecture or _ARCHITECTURES.get(major, compile_target)


def contradiction(gpu_name: str, judge: JudgeIdentity) -> str | None:
    """Return a warning if the configured name is not that of the judge's GPU, else None."""
    if gpu_name == "auto" or judge.device != "cuda":
        return None
    named, found = words(gpu_name) - _GENERIC, words(judge.hardware)
    if not named or named & found:
        return None
    return f"gpu_name is {gpu_name!r} but the judge's GPU is {judge.hardware!r}; prompts name the former"


def _architecture_of(name: str) -> str:
    for architecture, models in _BY_NAME:
        if not words(name).isdisjoint(models):
            return architecture
    return "NVIDIA"
