"""Parameters of a process's start: private folders, an allow-listed environment, limits."""

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adaexplore.core.wire import DeviceKind
from online_judge.common.cores import run_on
from online_judge.sandbox import confinement, mounts
from online_judge.sandbox.confinement import Wanted

Role = Literal["candidate", "compiler", "evaluator"]

CANDIDATE_FILE = "candidate.py"
_GPU = ("CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", *_GPU, *mounts.PATH_VARIABLES)


@dataclass(frozen=True)
class ProcessSpec:
    """Parameters of a process's start; nothing of the problem is among them."""

    folder: str  # private folder; the process finds a candidate's source there
    device: DeviceKind  # where the candidate runs
    visible_devices: str  # value of ``CUDA_VISIBLE_DEVICES``; empty on the CPU path
    compile_target: str  # compile target on the CPU path
    build_dir: str | None = None  # where CUDA extensions are built; None means inside ``folder``
    cores: tuple[int, ...] = ()  # CPU cores for everything but timing; empty for any
    role: Role = "candidate"  # a ``compiler`` only compiles kernels, an ``evaluator`` runs no candidates
    timing_cores: tuple[int, ...] = ()  # CPU cores of an evaluator while it times; empty for any
    cpu_max_elements: int = 0  # of references, see :class:`online_judge.settings.Settings`
    cpu_max_flops: float = 0.0  # likewise


def fork_server_environment(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the part of the server's environment that the judge's processes may know."""
    search_path = [mounts.REPOSITORY, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **_passed_on(environment),
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONPATH": os.pathsep.join(search_path),
        "PYTHONHASHSEED": "0",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # counting devices starts no CUDA, so forks can
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def _passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in _PASSED_ON if name in environment}


def wanted(spec: ProcessSpec) -> Wanted:
    cuda = spec.device == "cuda"
    limits = confinement.CUDA_LIMITS if cuda else confinement.CPU_LIMITS
    view = mounts.view(spec.folder, cuda=cuda, build_dir=spec.build_dir)
    return Wanted(view, limits)


def enter(spec: ProcessSpec) -> None:
    """Give this process, whose sandbox is in force, its folder and environment.

    Needs no privileges. :func:`assign` adds the job's part.
    """
    run_on(spec.cores)
    private = {
        "HOME": f"{spec.folder}/home",
        "TMPDIR": f"{spec.folder}/tmp",
        "XDG_CACHE_HOME": f"{spec.folder}/cache",
        "TRITON_CACHE_DIR": f"{spec.folder}/cache/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{spec.folder}/cache/inductor",
        "TORCH_EXTENSIONS_DIR": f"{spec.folder}/cache/extensions",
        "CUDA_CACHE_PATH": f"{spec.folder}/cache/cuda",
    }
    for path in private.values():
        os.makedirs(path, exist_ok=True)
    keep = _passed_on(os.environ) | private | {"USER": "candidate", "LOGNAME": "candidate"}
    os.environ.clear()
    os.environ.update(keep | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": spec.visible_devices})
    tempfile.tempdir = None
    os.chdir(spec.folder)
    if not mounts.is_installed():
        sys.path[:] = [entry for entry in sys.path if entry not in ("", mounts.REPOSITORY)]


def dot_precision(tf32: str) -> str | None:
    """Return the default precision of ``tl.dot`` under a policy; None leaves Triton's own."""
    return "ieee" if tf32 == "off" else None


def assign(*, tf32: str, build_dir: str | None = None) -> None:
    """Set the environment variables of one job.

    Extensions are built in the process's own folder if it was started without a ``build_dir``.
    """
    precision = dot_precision(tf32)
    if precision is not None:
        os.environ["TRITON_F32_DEFAULT"] = precision
    if build_dir is not None and os.access(build_dir, os.W_OK):
        os.environ["TORCH_EXTENSIONS_DIR"] = build_dir
