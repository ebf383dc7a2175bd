"""``adaexplore doctor``: what is installed, and what it can run."""

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess

from adaexplore import __version__
from adaexplore.cli.output import show
from adaexplore.core.errors import JudgeError
from adaexplore.core.wire import EvaluationRequest, WorkerStatus
from adaexplore.judge_client.connection import Connection, open_client
from adaexplore.judge_client.http import HttpJudge
from adaexplore.records.provenance import installed_version
from adaexplore.run.vendors import all_vendors
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import Environment, read_environment
from adaexplore.settings.paths import locate
from adaexplore.tasks.problem_folders import KB_ROOT

_AGENT_PACKAGES = ("openai", "anthropic", "argcomplete", "httpx", "pydantic", "pygments", "pyyaml", "tqdm")
_JUDGE_PACKAGES = ("torch", "triton", "numpy", "fastapi", "prometheus_client", "uvicorn")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--judge",
        default=RunConfig().remote_eval_url,
        metavar="URL",
        help="judge to ask about its sandbox (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the findings; always return 0."""
    environment = read_environment(os.environ)
    gpus = _gpus()
    needed = {name for vendor in all_vendors() for name in vendor.variables}
    present = {name for name in needed if os.environ.get(name, "").strip()}
    keys = [vendor.variables[0] for vendor in all_vendors() if vendor.variables]
    judge_ready = all(importlib.util.find_spec(name) for name in _JUDGE_PACKAGES)
    lines = [
        f"adaexplore {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}",
        "agent packages: " + _versions(_AGENT_PACKAGES),
        "judge packages: " + _versions(_JUDGE_PACKAGES),
        "GPUs: " + ("; ".join(gpus) if gpus else "none found by nvidia-smi"),
        f"nvcc: {shutil.which('nvcc') or 'none (only candidates with CUDA extensions need it)'}",
        "keys: " + ", ".join(f"{name} {'set' if name in present else 'not set'}" for name in keys),
        f"KernelBench: {_kernelbench(environment)}",
        *_judge(args.judge, environment.judge_token),
        "",
        "what would run:",
        *_would_run(bool(gpus), judge_ready, present),
    ]
    show("\n".join(lines))
    return 0


def _would_run(gpu: bool, judge_ready: bool, present: set[str]) -> list[str]:
    lines = []
    if not judge_ready:
        lines.append("- no judge of its own: pip install 'adaexplore[judge]', or set use_remote_eval: true")
    elif gpu:
        lines.append("- judge_device auto takes the GPU: kernels are checked and timed")
    else:
        lines.append(
            "- judge_device auto takes the CPU: kernels are compiled, interpreted and checked, not timed"
        )
    free = [vendor.names[0] for vendor in all_vendors() if not vendor.variables]
    lines.append(f"- server_type {', '.join(free[:-1])} and {free[-1]} need no key")
    for vendor in all_vendors():
        if present.intersection(vendor.variables[:1]):
            missing = [name for name in vendor.variables if name not in present]
            once = f", once {' and '.join(missing)} is set" if missing else ""
            lines.append(f"- server_type {vendor.names[0]}{once}")
    return lines


def _judge(url: str, token: str | None) -> list[str]:
    devices: list[str] = []
    try:
        with open_client() as client:
            connection = Connection(url, token=token, client=client)
            judge = HttpJudge(connection, EvaluationRequest())
            devices += map(_device, judge.workers())
            identity = judge.identity()
    except JudgeError as error:
        return [f"judge: {error}", *devices]
    lines = [f"judge: {url} ({identity.hardware})", *devices]
    if identity.sandbox is not None:
        if identity.sandbox.level:
            lines.append(
                f"judge sandbox level: {identity.sandbox.level} for candidates, "
                f"{identity.sandbox.evaluator or 'none'} for references"
            )
        lines.append("judge sandbox: " + (", ".join(identity.sandbox.in_force) or "no limits are active"))
        if identity.sandbox.missing:
            missing = ", ".join(identity.sandbox.missing)
            lines.append(f"warning: the judge could not set these limits for candidates: {missing}")
    return lines


def _device(worker: WorkerStatus) -> str:
    state = f"{worker.state}: {worker.reason}" if worker.reason else worker.state
    where = f"{worker.hardware or 'unknown'} on {worker.host}, slots: {worker.slots}"
    return f"judge device {worker.device}: {where}, {state}"


def _gpus() -> list[str]:
    """Return ``name, memory, driver`` of each GPU, from nvidia-smi."""
    command = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return answer.stdout.strip().splitlines() if answer.returncode == 0 else []


def _versions(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {installed_version(name) or 'missing'}" for name in names)


def _kernelbench(environment: Environment) -> str:
    root = environment.kernelbench_root or locate(KB_ROOT)
    if root.is_dir():
        return str(root)
    return f"not at {root} (set KERNELBENCH_ROOT or problem_root; this project's own problems need nothing)"
