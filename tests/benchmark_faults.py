"""Run each TritonBench-G file's own test on a simulated GPU, which refuses accesses outside of tensors.

``python -m tests.benchmark_faults FOLDER --out FILE.jsonl [--limit-s 45]``

The folder holds the files. ``--out`` gets a line for each with how its test ended; the same command continues
a stopped run. A GPU accepts many such accesses, and what they read differs from call to call.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from adaexplore.core.errors import UsageError
from adaexplore.core.files.json_lines import JsonLines
from tool_scripts.script import script, show

_ONE = "--one"
_TEXT_CHARS = 250


def run_test(path: Path, limit_s: float) -> str:
    """Run a file's own test in a process; return ``ran``, ``timeout``, or its error."""
    with tempfile.TemporaryDirectory() as folder:
        end = Path(folder) / "end"
        command = [sys.executable, "-m", "tests.benchmark_faults", _ONE, str(path), str(end)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return "timeout"
        return end.read_text(encoding="utf-8") if end.exists() else f"exit code {done.returncode}"


def _run(path: Path) -> str:
    import torch

    from online_judge.common import modules
    from online_judge.cpu import simulated_cuda

    sys.argv = [str(path)]
    torch.manual_seed(0)
    with simulated_cuda("sm_90"):
        try:
            modules.load_source(path.read_text(encoding="utf-8"), "task")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the file's own
            return f"{type(error).__name__}: {error}"[:_TEXT_CHARS]
    return "ran"


@script
def main(argv: Sequence[str] | None = None) -> None:
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == [_ONE]:
        Path(words[2]).write_text(_run(Path(words[1])), encoding="utf-8", errors="backslashreplace")
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
        out.append({"file": path.stem, "end": run_test(path, options.limit_s)})

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(judge, [path for path in files if path.stem not in done]))
    show(dict(Counter(line["end"].partition(":")[0] for line in out.read(dict)).most_common()))


if __name__ == "__main__":
    sys.exit(main())
