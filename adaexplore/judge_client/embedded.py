"""A judge started for one run, on a free loopback port."""

import importlib.util
import json
import math
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO

from adaexplore.core.errors import JudgeUnavailableError
from adaexplore.core.files.atomic import cannot_write
from adaexplore.core.streams import derive_seed
from adaexplore.settings.config import RunConfig

_NEEDED = ("fastapi", "numpy", "prometheus_client", "torch", "triton", "uvicorn")
_START_LIMIT_S = 180.0
_STOP_LIMIT_S = 20.0
_GPU_SLOTS_PER_CORE = 0.75
_LAST_WORDS = "Application startup failed. Exiting."
_SECRETS = ("_API_KEY", "_TOKEN", "_SECRET")


@contextmanager
def embedded_judge(config: RunConfig, log_path: Path, token: str) -> Iterator[str]:
    """Start a judge, yield its base URL, stop it.

    The judge ends with this process, even if that is killed. Call it in the main thread. It evaluates as
    many candidates in parallel as the run has steps in flight; at most one per core on the CPU, and
    three for every four cores on GPUs. On the CPU path, where nothing is timed, the seed of hidden inputs is
    the run's, so that equal runs are equal to the byte; otherwise the judge draws a random secret.

    Args:
        config: names the device, the target and the GPUs.
        log_path: the file for the judge's output.
        token: the token that requests to it need.

    Raises:
        JudgeUnavailableError: it cannot be started; the message says why.
    """
    device, gpu_ids = config.judge_device, config.gpu_ids or ()
    workers = config.num_processes * config.parallel_steps
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise JudgeUnavailableError(
            f"the embedded judge needs {', '.join(missing)}: pip install 'adaexplore[judge]', "
            "or set use_remote_eval: true and remote_eval_url"
        )
    on_cpu = device != "cuda" and (device != "auto" or shutil.which("nvidia-smi") is None)
    slots = max(min(workers, int((os.cpu_count() or 1) * (1 if on_cpu else _GPU_SLOTS_PER_CORE))), 1)
    environment = {key: value for key, value in os.environ.items() if not key.endswith(_SECRETS)}
    environment |= {
        "JUDGE_DEVICE": device,
        "COMPILE_TARGET": config.compile_target,
        "MAX_CONCURRENT_EVALS": str(math.ceil(slots / max(len(gpu_ids), 1))),
        "GPU_ALLOCATION_MODE": "auto",
        "ADAEXPLORE_JUDGE_TOKEN": token,
        "JUDGE_TOKENS": "",  # the run is its only client
        "JUDGE_STATE": "",  # the run has its own records
    }
    if gpu_ids:
        environment["AVAILABLE_GPUS"] = ",".join(map(str, gpu_ids))
    if on_cpu:
        environment["ADAEXPLORE_JUDGE_SECRET"] = str(derive_seed(config.seed, "judge"))
    try:
        log = log_path.open("ab")
    except OSError as error:
        raise cannot_write(log_path, error, "choose another save_path") from error
    with log, judge_process(environment, log) as judge:
        yield f"http://127.0.0.1:{judge.port}"


@dataclass(frozen=True)
class JudgeProcess:
    """A judge that is ready on a loopback port."""

    process: subprocess.Popen[bytes]
    port: int


@contextmanager
def judge_process(environment: Mapping[str, str], log: IO[bytes], *, port: int = 0) -> Iterator[JudgeProcess]:
    """Start ``python -m online_judge`` on ``port`` (0: a free one), yield it when it is ready, stop it.

    Raises:
        JudgeUnavailableError: it does not start; the message says why.
    """
    read, write = os.pipe()
    command = [sys.executable, "-m", "online_judge", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--announce", str(write), "--die-with-parent"]
    with open(read, encoding="utf-8") as announcement:
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[write],
                start_new_session=True,
            )
        finally:
            os.close(write)
        try:
            yield JudgeProcess(process, _port(announcement, Path(log.name)))
        finally:
            _stop(process)


def _port(announcement: TextIO, log: Path) -> int:
    """Read the port that the judge announces when it is ready; a closed pipe means that it exited."""
    if not select.select([announcement], [], [], _START_LIMIT_S)[0]:
        raise JudgeUnavailableError(f"the judge was not ready in {_START_LIMIT_S:.0f} s; see {log}")
    told = announcement.read()
    if not told:
        raise JudgeUnavailableError(f"the judge did not start: {_last_line(log)}")
    return int(json.loads(told)["port"])


def _last_line(log: Path) -> str:
    """Return the log's last line, without lines of the web server."""
    lines = log.read_text(errors="replace").strip().splitlines()
    told = [line for line in lines if not line.endswith(_LAST_WORDS)]
    return f"{told[-1].removeprefix('ERROR:').strip()[:300]} (see {log})" if told else f"see {log}"


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
