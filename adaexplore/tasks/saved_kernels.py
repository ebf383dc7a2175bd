"""Folders of saved kernels: ``level<N>/<problem id>.py``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import UsageError
from adaexplore.core.files.inputs import input_text
from adaexplore.core.text.json_text import parse_json

_LEVEL = re.compile(r"level(\d+)")
_KERNEL = re.compile(r"(\d+)(?:_.*)?(?<!\.hidden)\.py")


@dataclass(frozen=True)
class SavedKernel:
    """A saved kernel: ``level<N>/<problem id>.py``."""

    level: int
    problem_id: int
    path: Path
    source: str
    published: float | None  # its recorded speedup, if there is one

    @property
    def key(self) -> str:
        return f"{self.level}_{self.problem_id}"


def saved_kernels(folder: Path) -> list[SavedKernel]:
    """Return the kernels below ``folder``, by level and number.

    Speedups are read from ``metrics_level<N>.json`` beside a level's folder, if that exists.

    Raises:
        UsageError: there are no kernels, two have one number, or a file cannot be read.
    """
    levels = [folder] if _LEVEL.fullmatch(folder.name) else sorted(folder.rglob("level*"))
    found: dict[tuple[int, int], SavedKernel] = {}
    for place in levels:
        level = _LEVEL.fullmatch(place.name)
        if level is None or not place.is_dir():
            continue
        published = _published(place.with_name(f"metrics_{place.name}.json"))
        for path in sorted(place.iterdir()):
            number = _KERNEL.fullmatch(path.name)
            if number is None:
                continue
            known = found.get((int(level[1]), int(number[1])))
            if known is not None:
                raise UsageError(f"{path} and {known.path} are kernels of one problem; remove one")
            source = input_text(path, "kernel file")
            kernel = SavedKernel(int(level[1]), int(number[1]), path, source, published.get(number[1]))
            found[kernel.level, kernel.problem_id] = kernel
    if not found:
        raise UsageError(f"{folder} holds no kernel; name a folder with files such as level2/15.py")
    return [found[key] for key in sorted(found)]


def _published(path: Path) -> Mapping[str, float]:
    if not path.is_file():
        return {}
    try:
        problems = parse_json(input_text(path, "recorded metrics"))["problems"]
        stats = {key: problem["recorded_baseline"]["runtime_stats"] for key, problem in problems.items()}
        return {key: float(each["fast_p"]) for key, each in stats.items() if "fast_p" in each}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is not of the expected form: {error!r}; move it away") from error
