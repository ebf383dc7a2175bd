"""Do Triton's work before a first launch once per judge, not once per candidate, without starting CUDA.

Triton compiles helpers in C for each new cache folder: one that talks to the driver and, before version
3.7, one per launch signature. They are keyed by their source, so they are compiled once, kept in memory, and
written into each candidate process's own empty folder. A candidate can change only its own copies. Some
lookups of Triton have the same result in every process: the fork server makes them before it forks.
"""

import contextlib
import importlib
import itertools
import logging
import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

_BUILD_S = 120.0
_DRIVERS = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg")
_ARCHITECTURES = (80, 86, 89, 90, 100)
_MODULES = ("triton.compiler.code_generator", "triton.experimental.gluon", "triton.language.extra.libdevice")


def has_driver() -> bool:
    """Return True if there may be a GPU, without touching it."""
    return any(map(os.path.exists, _DRIVERS))


@dataclass(frozen=True)
class WarmCache:
    """Compiled helpers: contents by relative path in a Triton cache folder."""

    files: tuple[tuple[str, bytes], ...] = ()

    def seed(self, folder: Path) -> None:
        """Write the helpers into the cache folder of one process."""
        for name, content in self.files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


class Building:
    """A process that compiles the helpers while its parent does other work."""

    def __init__(self, folder: Path) -> None:
        """Start it; ``folder`` is created, used and removed."""
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "online_judge.processes.warm_cache"],
            env=os.environ | {"TRITON_CACHE_DIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self) -> WarmCache:
        """Wait for the process; if helpers did not compile, candidates compile them."""
        try:
            _, errors = self._process.communicate(timeout=_BUILD_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, errors = self._process.communicate()
        if self._process.returncode:
            last = errors.strip().rpartition("\n")[2]
            log.warning("Triton's helpers could not all be compiled beforehand (%s)", last)
        paths = sorted(self._folder.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"))
        files = [(str(path.relative_to(self._folder)), path.read_bytes()) for path in paths]
        shutil.rmtree(self._folder, ignore_errors=True)
        return WarmCache(tuple(files))


def preload() -> None:
    """Have Triton hash itself, run ptxas and find libcuda; forked processes inherit the results."""
    for name in _MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    from triton.backends.nvidia import compiler, driver
    from triton.runtime import build, cache

    cache.triton_key()
    build.platform_key()
    for architecture in _ARCHITECTURES:
        with contextlib.suppress(RuntimeError, OSError, subprocess.CalledProcessError):
            compiler.get_ptxas_version(architecture)
    with contextlib.suppress(AssertionError, OSError, subprocess.CalledProcessError):
        driver.library_dirs()


def compile_helpers() -> None:
    """Fill ``TRITON_CACHE_DIR``; loads the helpers too, so it runs in a process of its own."""
    from triton.backends.nvidia import driver
    from triton.runtime.build import compile_module_from_src

    def compile_launcher(signature: dict[str, str]) -> None:
        with contextlib.suppress(ImportError):
            compile_module_from_src(
                src=driver.make_launcher({}, signature, None),
                name="__triton_launcher",
                library_dirs=driver.library_dirs(),
                include_dirs=driver.include_dirs,
                libraries=driver.libraries,
            )

    with contextlib.suppress(ImportError):  # it is in the cache before it is loaded
        driver.CudaUtils()
    if not hasattr(driver, "make_launcher"):
        return
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(compile_launcher, _signatures()))


def _signatures() -> list[dict[str, str]]:
    """Return launch signatures of common kernels: pointers, then integers, then constants."""
    signatures = []
    for pointers, sizes, constants in itertools.product(range(1, 5), range(1, 5), range(1, 3)):
        kinds = ["*fp32"] * pointers + ["i32"] * sizes + ["constexpr"] * constants
        signatures.append({f"a{index}": kind for index, kind in enumerate(kinds)})
    return signatures


if __name__ == "__main__":
    compile_helpers()
