"""Triton's compiled helpers, with a library in the place of the driver's that does nothing."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from online_judge.processes import warm_cache
from online_judge.processes.warm_cache import Building, WarmCache

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module")
def driver_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a ``libcuda.so.1`` that has all functions the helpers may ask for."""
    import triton

    folder = tmp_path_factory.mktemp("driver")
    source = Path(triton.__file__).parent / "backends" / "nvidia" / "driver.c"
    names = sorted(set(re.findall(r"\b(cu[A-Z]\w+)\(", source.read_text())))
    text = "".join(f"int {name}(void) {{ return 0; }}\n" for name in names)
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / "libcuda.so.1")]
    subprocess.run(command, input=text.encode(), check=True)
    return folder


@pytest.fixture(autouse=True)
def with_driver(driver_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_LIBCUDA_PATH", str(driver_library))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver_library))
    monkeypatch.delenv("CC", raising=False)


def works_without_a_compiler(cache: Path) -> bool:
    """Whether a fresh process with this cache folder gets by without compiling anything."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(cache), "CC": "/bin/false"}
    command = [sys.executable, "-m", "online_judge.processes.warm_cache"]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def test_process_with_a_seeded_folder_compiles_no_helper(tmp_path: Path) -> None:
    template = tmp_path / "template"
    cache = Building(template).result()
    assert cache.files
    assert not template.exists()
    assert not works_without_a_compiler(tmp_path / "empty")
    cache.seed(tmp_path / "seeded")
    assert works_without_a_compiler(tmp_path / "seeded")


def test_poisoned_folder_changes_no_other(tmp_path: Path) -> None:
    cache = WarmCache((("key/cuda_utils.so", b"as compiled"),))
    for name in ("one", "two"):
        cache.seed(tmp_path / name)
        (path,) = (tmp_path / name).rglob("*.so")
        assert path.read_bytes() == b"as compiled"
        path.write_bytes(b"poison")


def test_missing_compiler_gives_only_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CC", "/bin/false")
    template = tmp_path / "template"
    assert Building(template).result() == WarmCache()
    assert "/bin/false" in caplog.text
    assert not template.exists()


def test_preload_fills_caches_without_starting_cuda() -> None:
    script = (
        "from online_judge.processes import warm_cache; warm_cache.preload()\n"
        "import torch\n"
        "from triton.runtime import build, cache\n"
        "from triton.backends.nvidia import driver\n"
        "asked = (cache.triton_key, build.platform_key, driver.library_dirs)\n"
        "print([each.cache_info().currsize for each in asked], torch.cuda.is_initialized())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[1, 1, 1] False"


def test_machine_without_a_driver_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(warm_cache, "_DRIVERS", (str(tmp_path / "nvidia"),))
    assert not warm_cache.has_driver()
    (tmp_path / "nvidia").touch()
    assert warm_cache.has_driver()
