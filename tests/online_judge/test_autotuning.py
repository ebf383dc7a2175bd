"""Configurations of an autotuned kernel are compiled before the first is timed, and timed less."""

import threading
from typing import Any

import pytest
from triton.backends.nvidia.driver import CudaDriver
from triton.runtime import _async_compile
from triton.runtime.autotuner import Autotuner, Config
from triton.runtime.jit import KernelInterface

from online_judge.candidate import autotuning

CONFIGS = [Config({"BLOCK": size}) for size in (16, 32, 64)]
LAUNCH = {"grid": (4,), "warmup": False}  # what ``kernel[(4,)](x, n)`` passes on


class Kernel(KernelInterface):  # type: ignore[misc]
    """Compiles as a kernel of Triton's does: in the mode's threads where there is one."""

    arg_names = ("x", "n")

    def __init__(self, broken: int = 0) -> None:
        self.broken = broken
        self.together = threading.Barrier(len(CONFIGS), timeout=10)
        self.compiled: dict[int, tuple[Any, ...]] = {}

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        assert warmup
        size = kwargs["BLOCK"]

        def compiled() -> str:
            self.together.wait()
            if size == self.broken:
                raise ValueError("it does not compile")
            self.compiled[size] = (*args, grid)
            return "kernel"

        mode = _async_compile.active_mode.get()
        assert mode is not None
        return mode.submit(size, compiled, lambda kernel: None)


def tuner(kernel: Kernel) -> Any:
    """Return an autotuner in its first call."""
    made = Autotuner.__new__(Autotuner)
    made.configs, made.fn, made.nargs = CONFIGS, kernel, {"x": "x", "n": 7}
    made.early_config_prune = made.perf_model = None
    return made


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many cores as configurations."""
    monkeypatch.setattr(autotuning.os, "sched_getaffinity", lambda pid: set(range(8)))


def test_all_configurations_are_compiled_side_by_side() -> None:
    kernel = Kernel()
    with autotuning.quick_autotuning():
        chosen_from = tuner(kernel).prune_configs(LAUNCH)
    assert chosen_from == CONFIGS
    assert kernel.compiled == dict.fromkeys((16, 32, 64), ("x", 7, (4,)))


def test_failing_configuration_is_left_to_the_autotuner() -> None:
    kernel = Kernel(broken=32)
    with autotuning.quick_autotuning():
        assert tuner(kernel).prune_configs(LAUNCH) == CONFIGS
    assert sorted(kernel.compiled) == [16, 64]


def test_nothing_stays_changed() -> None:
    before = Autotuner.prune_configs
    kernel = Kernel()
    with autotuning.quick_autotuning():
        pass
    assert Autotuner.prune_configs is before
    assert tuner(kernel).prune_configs(LAUNCH) == CONFIGS
    assert not kernel.compiled


def test_fastest_call_in_30_ms_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def do_bench(call: object, **how: object) -> list[float]:
        asked.append(how)
        return [3.0, 2.0, 9.0]

    monkeypatch.setattr(autotuning, "do_bench", do_bench)
    driver: Any = CudaDriver.__new__(CudaDriver)
    before = CudaDriver.get_benchmarker
    with autotuning.quick_autotuning():
        found = driver.get_benchmarker()(lambda: None, quantiles=(0.5, 0.2, 0.8))
    assert found == [2.0, 2.0, 2.0]
    assert asked == [{"warmup": 5, "rep": 30, "return_mode": "all"}]
    assert CudaDriver.get_benchmarker is before


def test_other_users_of_the_benchmark_get_tritons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotuning, "do_bench", lambda call, *how, **more: (how, more))
    driver: Any = CudaDriver.__new__(CudaDriver)
    with autotuning.quick_autotuning():
        benchmark = driver.get_benchmarker()
    assert benchmark(None) == ((), {"quantiles": None})
    assert benchmark(None, 3, rep=9) == ((3,), {"rep": 9, "quantiles": None})
    assert benchmark(None, rep=9, quantiles=(0.5,)) == ((), {"rep": 9, "quantiles": (0.5,)})


def test_one_core_compiles_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotuning.os, "sched_getaffinity", lambda pid: {0})
    kernel = Kernel()
    with autotuning.quick_autotuning():
        assert tuner(kernel).prune_configs(LAUNCH) == CONFIGS
    assert not kernel.compiled
