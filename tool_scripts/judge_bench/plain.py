"""The plain comparison, which defines "honest" in the benchmark, without the judge's code.

A fresh interpreter runs this file on a candidate: both modules are constructed under one seed, the candidate
gets the reference's weights if they fit, and outputs on five seeded inputs are compared at 5e-2.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.records import PlainRun
from tool_scripts.judge_bench.service import ROOT

SEED = 42
TOLERANCE = 5e-2
TRIALS = 5
_RESULT = "result.json"
_DETAIL_CHARS = 300


def compare(candidate: Candidate, device: str, limit_s: float, environment: dict[str, str]) -> PlainRun:
    """Compare a candidate in its own process; leave no process and no file behind."""
    with tempfile.TemporaryDirectory(prefix="bench-judge-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "reference.py").write_text(candidate.reference, encoding="utf-8")
        (folder / "candidate.py").write_text(candidate.source, encoding="utf-8")
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        interpreted = {"TRITON_INTERPRET": "1"} if device == "cpu" else {}
        errors = folder / "stderr"
        with errors.open("wb") as stderr:
            begin = time.monotonic()
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, device],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": path} | interpreted | environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
            outcome = "crash"
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                outcome = "timeout"
            finally:
                seconds = time.monotonic() - begin
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        detail = ""
        if outcome == "crash":
            detail = errors.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
            with contextlib.suppress(OSError, ValueError):
                outcome, detail = json.loads((folder / _RESULT).read_text(encoding="utf-8"))
        return PlainRun(
            candidate=candidate.id, outcome=outcome, detail=detail[:_DETAIL_CHARS], seconds=seconds
        )


def main() -> None:
    """Compare ``candidate.py`` with ``reference.py`` in the working folder; write outcome and detail."""
    try:
        detail = difference_of_models(sys.argv[1])
        result = ("wrong" if detail else "passed", detail)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the candidate's exception is its outcome
        result = ("error", f"{type(error).__name__}: {error}")
    Path(_RESULT).write_text(json.dumps(result), encoding="utf-8")


def difference_of_models(device: str) -> str:
    """Return the first difference of outputs; raise whatever the candidate raises."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False  # eager products in IEEE precision
    torch.backends.cudnn.allow_tf32 = False
    reference, candidate = import_module("reference"), import_module("candidate")
    _seed(SEED)
    init_inputs = list(reference.get_init_inputs())
    _seed(SEED)
    want_model = reference.Model(*init_inputs).to(device)
    _seed(SEED)
    got_model = candidate.ModelNew(*init_inputs).to(device)
    weights, own = want_model.state_dict(), got_model.state_dict()
    if own.keys() == weights.keys() and all(own[name].shape == weights[name].shape for name in weights):
        got_model.load_state_dict(weights)
    with torch.no_grad():
        for trial in range(TRIALS):
            _seed(SEED + trial)
            values = [each.to(device) if torch.is_tensor(each) else each for each in reference.get_inputs()]
            _seed(trial)
            want = want_model(*[each.clone() if torch.is_tensor(each) else each for each in values])
            _seed(trial)
            got = got_model(*values)
            try:
                torch.testing.assert_close(got, want, rtol=TOLERANCE, atol=TOLERANCE, check_dtype=False)
            except AssertionError as error:
                return str(error)
    return ""


def _seed(seed: int) -> None:
    import numpy
    import torch

    torch.manual_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)


if __name__ == "__main__":
    main()
