"""Run the own test of each TritonBench-G file on a simulated GPU, which refuses accesses outside of tensors.

``python -m tool_scripts.benchmark_faults FOLDER --out FILE.jsonl [--limit-s 45]``

The folder holds the files. ``--out`` gets a line for each with how its test ended; the same command continues
a stopped run. A GPU accepts many such accesses, and what they read differs from call to call.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from adaexplore.core.errors import UsageError
from adaexplore.core.files.json_lines import JsonLines
from tool_scripts.script import script, show

_ONE = "--one"
_TEXT_CHARS = 250


def how_it_ends(path: Path, limit_s: float) -> str:
    """Return ``ran``, ``timeout``, or the error of the file's own test, in a process of its own."""
    command = [sys.executable, "-m", "tool_scripts.benchmark_faults", _ONE, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return "timeout"
    lines = done.stdout.splitlines()
    return str(json.loads(lines[-1])) if done.returncode == 0 and lines else f"exit code {done.returncode}"


def _run(path: Path) -> str:
    import torch

    from online_judge.cpu import simulated_cuda

    torch.manual_seed(0)
    spec = importlib.util.spec_from_file_location("task", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["task"] = module
    with simulated_cuda("sm_90"):
        try:
            spec.loader.exec_module(module)
        except Exception as error:  # noqa: BLE001 - the file's own
            return f"{type(error).__name__}: {error}"[:_TEXT_CHARS]
    return "ran"


@script
def main(argv: Sequence[str] | None = None) -> None:
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == [_ONE]:
        sys.stdout.write(f"\n{json.dumps(_run(Path(words[1])))}\n")
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder with the files")
    parser.add_argument("--out", type=Path, required=True, help="file of results; lines are added")
    parser.add_argument("--limit-s", type=float, default=45.0, help="of one file (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="files at a time (%(default)s)")
    options = parser.parse_args(words)
    files = sorted(options.folder.glob("*.py"))
    if not files:
        raise UsageError(f"no files *.py in {options.folder}")
    out = JsonLines(options.out)
    done = {line["file"] for line in out.read(dict)}

    def judge(path: Path) -> None:
        out.append({"file": path.stem, "end": how_it_ends(path, options.limit_s)})

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(judge, [path for path in files if path.stem not in done]))
    show(dict(Counter(line["end"].partition(":")[0] for line in out.read(dict)).most_common()))


if __name__ == "__main__":
    sys.exit(main())
