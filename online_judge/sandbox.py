"""The surroundings of a player: private folders, an allow-listed environment, limits."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from online_judge import linux

DeviceKind = Literal["cuda", "cpu"]

CANDIDATE_FILE = "candidate.py"
_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "TRITON_PTXAS_PATH",
    "TRITON_LIBCUDA_PATH",
    "CC",
    "CXX",
)
_MAX_FILE_BYTES = 2**30
_CPU_MEMORY_BYTES = 8 * 2**30


@dataclass(frozen=True)
class PlayerSpec:
    """What a player is started with; it holds nothing of the problem.

    Attributes:
        folder: private folder, with the candidate's source in it.
        device: where the candidate runs.
        visible_devices: value of ``CUDA_VISIBLE_DEVICES``; empty on the CPU path.
        compile_target: what kernels are compiled for on the CPU path.
        tf32: precision policy.
        build_dir: where CUDA extensions are built; None means inside ``folder``.
        executes: whether kernels run on the CPU path; else they are only compiled.
    """

    folder: str
    device: DeviceKind
    visible_devices: str
    compile_target: str
    tf32: str
    build_dir: str | None = None
    executes: bool = True

    def to_json(self) -> dict[str, Any]:
        """A JSON object that :meth:`from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The spec that :meth:`to_json` wrote."""
        return cls(**data)


def zygote_environment(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """What the zygote, and so every process below it, may know of the server's environment."""
    root = str(Path(__file__).resolve().parent.parent)
    search_path = [root, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    passed_on = {name: environment[name] for name in _PASSED_ON if name in environment}
    return (
        {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        | passed_on
        | {
            "HOME": str(home),
            "TMPDIR": str(home),
            "PYTHONPATH": os.pathsep.join(search_path),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }
    )


def enter(spec: PlayerSpec) -> None:
    """Move this process into the player's folder, environment and limits."""
    folder = Path(spec.folder)
    private = {
        "HOME": folder / "home",
        "TMPDIR": folder / "tmp",
        "XDG_CACHE_HOME": folder / "cache",
        "TRITON_CACHE_DIR": folder / "cache" / "triton",
        "TORCHINDUCTOR_CACHE_DIR": folder / "cache" / "inductor",
        "TORCH_EXTENSIONS_DIR": Path(spec.build_dir) if spec.build_dir else folder / "cache" / "extensions",
        "CUDA_CACHE_PATH": folder / "cache" / "cuda",
    }
    for path in private.values():
        path.mkdir(parents=True, exist_ok=True)
    keep = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    os.environ.clear()
    os.environ.update(keep)
    os.environ.update({name: str(path) for name, path in private.items()})
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CUDA_VISIBLE_DEVICES"] = spec.visible_devices
    if spec.tf32 == "off":
        os.environ["TRITON_F32_DEFAULT"] = "ieee"
    tempfile.tempdir = None
    os.chdir(folder)
    sys.path[:] = [entry for entry in sys.path if entry not in ("", str(Path(__file__).parent.parent))]
    linux.forbid_new_privileges()
    linux.limit(resource.RLIMIT_CORE, 0)
    linux.limit(resource.RLIMIT_FSIZE, _MAX_FILE_BYTES)
    if spec.device == "cpu":  # CUDA reserves address space far beyond what it uses
        linux.limit(resource.RLIMIT_AS, linux.address_space_bytes() + _CPU_MEMORY_BYTES)
