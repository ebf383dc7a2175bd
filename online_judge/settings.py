"""Read the judge's settings from its environment."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args

from adaexplore.core.dialects import catalogue
from adaexplore.core.errors import ConfigError
from adaexplore.core.wire import DeviceKind
from online_judge.common.tokens import Client, read_clients
from online_judge.sandbox.read_back import LEVELS, Level

log = logging.getLogger(__name__)

JudgeDevice = Literal["auto", DeviceKind]
AllocationMode = Literal["auto", "manual"]
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 12017


@dataclass(frozen=True)
class Settings:
    """The judge's settings; names follow the environment variables."""

    judge_device: JudgeDevice = "auto"  # ``auto`` takes CUDA if there is a GPU
    compile_target: str = "sm_90"  # architecture for kernels on the CPU path, such as ``sm_90``
    secret: bytes = b""  # key of the hidden seeds; a fixed one makes the judge repeat itself
    max_concurrent_evals: int | None = None  # evaluations at a time on one device; None: as many as fit
    max_queue_size: int = 100  # waiting evaluations per device before 503
    runtime_timeout_s: int = 600  # cap on an evaluation's run time once it has a slot
    available_gpus: tuple[int, ...] | None = None  # device indices to use; None means all
    allocation_mode: AllocationMode = "auto"  # ``auto`` ignores a request's device, ``manual`` uses it
    build_dir: str | None = None  # where CUDA extensions are built; a request may name a folder below it
    timing_root: Path = Path("results/timing")  # recorded baselines: ``<gpu>/baseline_time_torch.json``
    cpu_max_elements: int = 4_000_000  # largest sum of input, weight and output elements on the CPU path
    cpu_max_flops: float = 2e9  # largest work of one reference call on the CPU path
    token: str | None = field(default=None, repr=False)  # without it and ``clients``, loopback only
    clients: tuple[Client, ...] = field(default=(), repr=False)  # from the file ``JUDGE_TOKENS``
    max_body_bytes: int = 8 * 2**20  # largest body of a request
    max_source_bytes: int = 2**18  # largest candidate or reference; larger ones are answered at once
    state_file: Path | None = None  # where accepted jobs and known verdicts are kept; None: in memory
    cache_v1: bool = False  # whether v1 answers with known verdicts; by default it measures again
    cache_v2: bool = True  # the same for jobs of v2
    compile_slots: int | None = None  # compile jobs at a time; None means a quarter of the cores
    ready_processes: int | None = None  # candidate processes kept ready per device; None: as slots need
    repeatable: bool = False  # whether equal requests get equal hidden inputs; else each job has its own
    ray: str | None = None  # address of the Ray cluster whose devices are used; ``auto``: this machine's
    require_sandbox: Level = "none"  # lowest sandbox level with which the judge starts
    benchmarks: Mapping[str, str] = field(
        default_factory=dict
    )  # folders of other benchmarks' tasks, by variable

    def limit_s(self, asked_s: int | None) -> int:
        """Return the run time of an evaluation for which a client asked ``asked_s`` seconds."""
        return min(asked_s or self.runtime_timeout_s, self.runtime_timeout_s)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read and check the variables; raises ConfigError with the variable and its valid values."""
        env = os.environ if environment is None else environment
        device = env.get("JUDGE_DEVICE", "auto").strip().lower()
        if device not in get_args(JudgeDevice):
            raise ConfigError(f"JUDGE_DEVICE is {device!r}; set it to {', '.join(get_args(JudgeDevice))}")
        target = env.get("COMPILE_TARGET", "sm_90").strip()
        if not re.fullmatch(r"sm_\d{2,3}[a-z]?", target):
            raise ConfigError(f"COMPILE_TARGET is {target!r}; set it to sm_NN, such as sm_90")
        mode = env.get("GPU_ALLOCATION_MODE", "auto").strip().lower()
        if mode not in ("auto", "manual"):
            log.warning("GPU_ALLOCATION_MODE is %r, not auto or manual: auto is used", mode)
            mode = "auto"
        ready = env.get("ARMED_PLAYERS", "").strip()
        secret, tokens = env.get("ADAEXPLORE_JUDGE_SECRET", ""), env.get("JUDGE_TOKENS", "").strip()
        cache = env.get("RESULT_CACHE", "").strip()
        if cache not in ("", "0", "1"):
            raise ConfigError(f"RESULT_CACHE is {cache!r}; set it to 1 (also for v1) or 0 (never)")
        sandbox = env.get("JUDGE_REQUIRE_SANDBOX", "").strip().lower() or "none"
        if sandbox not in LEVELS:
            raise ConfigError(f"JUDGE_REQUIRE_SANDBOX is {sandbox!r}; set it to {', '.join(LEVELS)}")
        return cls(
            judge_device=cast(JudgeDevice, device),
            compile_target=target,
            secret=secret.encode() if secret else secrets.token_bytes(32),
            max_concurrent_evals=_positive(env, "MAX_CONCURRENT_EVALS", 0) or None,
            max_queue_size=_positive(env, "MAX_QUEUE_SIZE", 100, least=0),
            runtime_timeout_s=_positive(env, "RUNTIME_TIMEOUT", 600),
            available_gpus=_gpu_list(env.get("AVAILABLE_GPUS", "")),
            allocation_mode=cast(AllocationMode, mode),
            build_dir=_build_dir(env),
            timing_root=Path(env.get("TIMING_ROOT") or _default_timing_root()),
            cpu_max_elements=_positive(env, "CPU_MAX_ELEMENTS", 4_000_000),
            cpu_max_flops=float(_positive(env, "CPU_MAX_FLOPS", 2_000_000_000)),
            token=_token(env),
            clients=read_clients(Path(tokens)) if tokens else (),
            max_body_bytes=_positive(env, "MAX_BODY_BYTES", 8 * 2**20),
            max_source_bytes=_positive(env, "MAX_SOURCE_BYTES", 2**18),
            state_file=_state_file(env),
            cache_v1=cache == "1",
            cache_v2=cache != "0",
            repeatable=bool(secret),
            require_sandbox=sandbox,
            ray=_ray(env, mode),
            benchmarks={name: env.get(name, "") for name in catalogue.VARIABLES.values()},
            compile_slots=_positive(env, "COMPILE_SLOTS", 0) or None,
            ready_processes=_positive(env, "ARMED_PLAYERS", 0, least=0) if ready else None,
        )


def bind_address(environment: Mapping[str, str] | None = None) -> tuple[str, int]:
    """Return host and port to listen on: ``HOST`` and ``PORT``, loopback and 12017 by default."""
    env = os.environ if environment is None else environment
    port = _positive(env, "PORT", DEFAULT_PORT, least=0)
    if port > 65535:
        raise ConfigError(f"PORT is {port}; set it to 0..65535")
    return env.get("HOST") or DEFAULT_HOST, port


def default_state_file(port: int, environment: Mapping[str, str] | None = None) -> Path:
    """Return where a judge on ``port`` keeps its state: below ``XDG_STATE_HOME``, else ``~/.cache``."""
    env = os.environ if environment is None else environment
    root = env.get("XDG_STATE_HOME", "").strip()
    folder = Path(root) if root else Path.home() / ".cache"
    return folder / "adaexplore" / "judge" / f"{port}.sqlite"


def _state_file(env: Mapping[str, str]) -> Path | None:
    text = env.get("JUDGE_STATE", "").strip()
    if not text:
        return None
    try:
        path = Path(text).expanduser()
        fits = path.is_file() if path.exists() else not path.parent.exists() or path.parent.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(f"JUDGE_STATE {text!r} cannot be used ({error}); name another file") from error
    if not fits:
        raise ConfigError(f"JUDGE_STATE {text!r} is no regular file in a folder; name another file")
    return path


def _build_dir(env: Mapping[str, str]) -> str | None:
    text = env.get("BUILD_DIR", "")
    if text and os.path.lexists(text) and not os.path.isdir(text):
        raise ConfigError(f"BUILD_DIR is {text!r}, which is no folder; name another")
    return text or None


def _ray(env: Mapping[str, str], mode: str) -> str | None:
    address = env.get("JUDGE_RAY", "").strip() or None
    if address is not None:
        if importlib.util.find_spec("ray") is None:
            raise ConfigError("--ray (JUDGE_RAY) needs Ray: pip install 'adaexplore[scale]'")
        for name in ("AVAILABLE_GPUS", "GPU_ALLOCATION_MODE"):
            if env.get(name, "").strip() and not (name == "GPU_ALLOCATION_MODE" and mode == "auto"):
                raise ConfigError(f"{name} is for the devices of one machine: unset it, or leave --ray out")
    return address


def _token(env: Mapping[str, str]) -> str | None:
    token = env.get("ADAEXPLORE_JUDGE_TOKEN", "").strip()
    if not all("!" <= letter <= "~" for letter in token):
        raise ConfigError("ADAEXPLORE_JUDGE_TOKEN has blanks or characters outside ASCII; choose another")
    return token or None


def _positive(env: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        value = int(float(text)) if "e" in text.lower() else int(text)
    except (ValueError, OverflowError):
        value = least - 1
    if value < least:
        raise ConfigError(f"{name} is {text!r}; set it to a whole number of at least {least}")
    return value


def _gpu_list(text: str) -> tuple[int, ...] | None:
    """Return the device indices of a comma list; drop parts that are not numbers, as clients expect."""
    if not text.strip():
        return None
    parts = [part.strip() for part in text.split(",")]
    gpus = tuple(dict.fromkeys(int(part) for part in parts if part.isascii() and part.isdigit()))
    if not gpus:
        raise ConfigError(f"AVAILABLE_GPUS is {text!r}; set it to device numbers such as 0,1")
    return gpus


def _default_timing_root() -> Path:
    """Return ``results/timing`` of the working folder, else of the folder that holds this package."""
    here = Path("results/timing")
    return here.absolute() if here.is_dir() else Path(__file__).parent.parent / "results" / "timing"
