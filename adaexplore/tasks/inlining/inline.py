"""Inline packages on the agent side: decide whether a problem needs it, and ask the worker."""

import ast
import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Set
from pathlib import Path
from typing import Any

from adaexplore.core.errors import TaskError
from adaexplore.core.text.syntax import parse, parsed
from adaexplore.core.wire import Direction
from adaexplore.tasks.inlining.modules import PLAIN, top_level
from adaexplore.tasks.module_check import REQUIRED_NAMES, WORKLOADS

JudgePackages = Callable[[], Collection[str]]
"""Returns the packages that the judge can import."""

TIME_LIMIT_S = 300.0
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_ROOT = Path(__file__).resolve().parents[3]


def inlined(
    path: Path, source: str, hidden: str | None, direction: Direction, judge_packages: JudgePackages
) -> str:
    """Return a problem's text with the source of what it imports from packages; most texts are unchanged.

    The inlined module was run and equals the original. A package whose source is too large, or cannot be
    inlined, stays an import if the judge has it.

    Args:
        path: the problem file; its folder is searched for modules too.
        source: its text.
        hidden: the text of its hidden workloads, which may use all names of the problem.
        direction: decides whether gradients are compared too.
        judge_packages: asked only if a package may have to stay an import.

    Raises:
        TaskError: the source cannot be inlined; the message names the largest parts or the reason.
    """
    packages = _packages(source)
    if not packages:
        return source
    unknown = sorted(_packages(hidden or "") - packages)
    if unknown:
        raise TaskError(
            f"{path.with_suffix('.hidden.py')}: imports {', '.join(unknown)}; import it in {path.name} too"
        )
    stay: set[str] = set()
    while packages - stay:
        answer = _ask_worker(path, source, hidden, direction, stay)
        if "text" in answer:
            return str(answer["text"])
        could_stay = [each for each in answer.get("packages", sorted(packages)) if each not in stay]
        there = judge_packages() if could_stay else ()
        kept = next((each for each in could_stay if each in there), None)
        if kept is None:
            raise TaskError(f"{path}: {answer['error']}")
        stay.add(kept)
    return source


def _packages(source: str) -> Set[str]:
    """Return the packages that a text imports besides those of every judge; "" for relative imports."""
    tree = parsed(source)  # other text is refused elsewhere
    return {top_level(name) for name in _imported(tree)} - PLAIN if tree else frozenset()


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "" if node.level else node.module or ""


def _ask_worker(
    path: Path, source: str, hidden: str | None, direction: Direction, stay: Collection[str]
) -> dict[str, Any]:
    """Return the worker's answer; see :func:`adaexplore.tasks.inlining.worker.main`."""
    used = {node.id for node in ast.walk(parse(hidden or "")) if isinstance(node, ast.Name)}
    wanted = [*REQUIRED_NAMES, WORKLOADS, "TOLERANCE", *sorted(used)]
    request = {
        "path": str(path.resolve()),
        "source": source,
        "stay": sorted(stay),
        "wanted": wanted,
        "direction": direction,
    }
    with tempfile.TemporaryDirectory(prefix="adaexplore-inline-") as folder:
        asked, answered, log = (Path(folder, name) for name in ("request.json", "answer.json", "log"))
        asked.write_text(json.dumps(request))
        command = [sys.executable, "-m", "adaexplore.tasks.inlining.worker", str(asked), str(answered)]
        with log.open("wb") as written:
            process = subprocess.Popen(
                [*_without_network(), *command],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                start_new_session=True,
            )
        try:
            code = process.wait(TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            return _failed(f"importing and running it took longer than {TIME_LIMIT_S:.0f} s")
        finally:
            _end(process)
        if answered.is_file():
            answer: dict[str, Any] = json.loads(answered.read_text())
            return answer
        lines = log.read_text(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {code}")
        return _failed(f"the process that imports it ended early: {last[:300]}")


def _failed(why: str) -> dict[str, Any]:
    return {"error": why}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the worker's process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment() -> dict[str, str]:
    """Return the user's environment without secrets, with this package importable."""
    kept = {name: value for name, value in os.environ.items() if not _SECRET.search(name)}
    search_path = [*filter(None, kept.get("PYTHONPATH", "").split(os.pathsep)), str(_ROOT)]
    return kept | {"PYTHONPATH": os.pathsep.join(search_path), "PYTHONDONTWRITEBYTECODE": "1"}


@functools.cache
def _without_network() -> tuple[str, ...]:
    """Return the command prefix that takes the network away; empty where that is not permitted."""
    prefix = ("unshare", "--map-root-user", "--net")
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ()
    return prefix
