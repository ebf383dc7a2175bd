"""A judge started for the length of a run, on a free loopback port."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from adaexplore.core.errors import JudgeUnavailableError, StorageError
from adaexplore.core.streams import derive_seed

_NEEDED = ("fastapi", "numpy", "prometheus_client", "torch", "triton", "uvicorn")
_START_LIMIT_S = 180.0
_STOP_LIMIT_S = 20.0
_SECRETS = ("_API_KEY", "_TOKEN", "_SECRET")


@contextmanager
def embedded_judge(
    *,
    device: str,
    compile_target: str,
    gpu_ids: Sequence[int],
    workers: int,
    seed: int,
    log_path: Path,
    token: str,
) -> Iterator[str]:
    """Start a judge, yield its base URL, stop it.

    It ends with this process even when that is killed. Must be entered in the main thread.

    Args:
        device: ``auto``, ``cuda`` or ``cpu``.
        compile_target: architecture the CPU path compiles for, such as ``sm_90``.
        gpu_ids: GPUs it may use; empty for all.
        workers: tasks in flight; on the CPU as many evaluations run side by side as cores allow,
            on a GPU one at a time.
        seed: on the CPU path the judge's hidden inputs derive from it, so that equal runs are
            equal to the byte; where times are measured the judge keeps a random secret.
        log_path: takes the judge's output.
        token: what requests to it must bear.

    Raises:
        JudgeUnavailableError: it cannot be started; the message says why.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise JudgeUnavailableError(
            f"the embedded judge needs {', '.join(missing)}: pip install 'adaexplore[judge]', "
            "or set use_remote_eval: true and remote_eval_url"
        )
    on_cpu = device == "cpu" or (device == "auto" and shutil.which("nvidia-smi") is None)
    environment = {key: value for key, value in os.environ.items() if not key.endswith(_SECRETS)}
    environment |= {
        "JUDGE_DEVICE": device,
        "COMPILE_TARGET": compile_target,
        "MAX_CONCURRENT_EVALS": str(min(workers, os.cpu_count() or 1) if on_cpu else 1),
        "GPU_ALLOCATION_MODE": "auto",
        "ADAEXPLORE_JUDGE_TOKEN": token,
        "JUDGE_STATE": "",  # it ends with the run, which has records of its own
    }
    if gpu_ids:
        environment["AVAILABLE_GPUS"] = ",".join(map(str, gpu_ids))
    if on_cpu:
        environment["ADAEXPLORE_JUDGE_SECRET"] = str(derive_seed(seed, "judge"))
    with tempfile.TemporaryDirectory(prefix="adaexplore-judge-") as folder:
        announcement = Path(folder) / "announcement.json"
        command = [sys.executable, "-m", "online_judge", "--host", "127.0.0.1", "--port", "0"]
        command += ["--announce", str(announcement), "--die-with-parent"]
        try:
            log = log_path.open("ab")
        except OSError as error:
            raise StorageError(f"cannot write {log_path}: {error.strerror}") from error
        with log:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield f"http://127.0.0.1:{_port(process, announcement, log_path)}"
        finally:
            _stop(process)


def _port(process: subprocess.Popen[bytes], announcement: Path, log_path: Path) -> int:
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline:
        if announcement.exists():
            return int(json.loads(announcement.read_text())["port"])
        if process.poll() is not None:
            raise JudgeUnavailableError(f"the embedded judge did not start: {_last_line(log_path)}")
        time.sleep(0.05)
    raise JudgeUnavailableError(f"the embedded judge was not ready in {_START_LIMIT_S:.0f} s; see {log_path}")


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines()
    return f"{lines[-1][:300]} (see {path})" if lines else f"see {path}"


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
