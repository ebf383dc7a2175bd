"""Find out how large a reference is before the CPU path runs it.

A child process runs the reference on tensors without data. If that is impossible because its control flow
depends on values, it runs on real ones, with limited memory and time.
"""

import contextlib
import importlib
import json
import os
import resource
import select
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from adaexplore.core.dialects import arguments
from online_judge.common import modules, trees
from online_judge.common.workloads import input_sets
from online_judge.evaluator.reference import ReferenceFailed
from online_judge.sandbox import linux

_TIME_S = 60.0
_MEMORY_BYTES = 3 * 2**30
_OUTCOME = TypeAdapter(dict[str, str])
_NO_MEMORY = f"it does not fit into {_MEMORY_BYTES / 2**30:.0f} GiB of memory"


class _TooLarge(Exception):
    """The reference is too large for the interpreter; the text names the limit."""


class _WorkMeter(TorchDispatchMode):  # type: ignore[misc]
    """Counts the elements that operations produce, and stops a run that produces too many."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self._limit = limit
        self._made = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._made += _elements(result)
        if self._made > self._limit:
            raise _TooLarge(
                f"its operations produce over {self._limit:.3g} elements, the limit without a GPU"
            )
        return result


def warm_up() -> None:
    """Import what the meters need, once for all children: it takes two seconds."""
    importlib.import_module("torch._dynamo")


def check(
    source: str, elements: int, work: float, *, hidden_workloads: str | None = None, workload: int = 0
) -> None:
    """Return if one call needs at most ``work`` operations and ``elements``, else raise.

    ``elements`` counts inputs (of one ``workload``), weights and outputs. Other failures are left to the real
    run.

    Raises:
        ReferenceFailed: it is too large, or checking needs too much memory or time, or ends its process.
    """
    for real in (False, True):
        run = partial(_measure, source, hidden_workloads, workload, elements, work, real=real)
        outcome = _measured_in_child(run)
        if "too_large" in outcome:
            raise ReferenceFailed(f"too large for the CPU judge: {outcome['too_large']}")
        if "error" not in outcome:
            return


def _measure(
    source: str, hidden_workloads: str | None, workload: int, elements: int, work: float, *, real: bool
) -> dict[str, str]:
    """Run the reference once under the meters; return ``{}`` if it is within the limits."""
    place = torch.device("cpu" if real else "meta")
    try:
        with torch.no_grad(), place, _WorkMeter(work), FlopCounterMode(display=False) as counter:
            modules.seed_everything(0)
            module = modules.load_source(source, modules.REFERENCE_MODULE)
            model = arguments.construct(module.Model, arguments.init_arguments(module))
            weights = list(model.state_dict().values()) if isinstance(model, torch.nn.Module) else []
            held = _within(elements, _elements(weights))
            forward = model.forward if isinstance(model, torch.nn.Module) else model
            drawn = input_sets(module, hidden_workloads)[workload].draw()
            readings = arguments.readings(drawn, forward, "get_inputs()")
            held = _within(elements, held + _elements(readings[0].values))
            number = arguments.decide(readings, lambda each: arguments.construct(model, each), "get_inputs()")
            _within(elements, held + _elements(arguments.construct(model, readings[number])))
            flops = counter.get_total_flops()
            if flops > work:
                raise _TooLarge(
                    f"one call takes {flops:.3g} floating-point operations, "
                    f"the limit without a GPU is {work:.3g}"
                )
    except _TooLarge as error:
        return {"too_large": str(error)}
    except MemoryError:
        return {"too_large": _NO_MEMORY}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, the real run reports it
        if real and "DefaultCPUAllocator" in str(error):
            return {"too_large": _NO_MEMORY}
        return {"error": type(error).__name__}
    return {}


def _within(limit: int, count: int) -> int:
    if count > limit:
        raise _TooLarge(
            f"inputs, weights and outputs have over {limit} elements "
            f"({count} counted), the limit without a GPU"
        )
    return count


def _elements(value: object) -> int:
    with contextlib.suppress(trees.UnsupportedTree):
        return sum(int(leaf.numel()) for leaf in trees.take_apart(value).leaves)
    return 0


def _measured_in_child(measure: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Measure in a forked child, because a reference may end its process or fill its memory."""
    read, write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            linux.die_with_parent(signal.SIGKILL, parent)
            linux.limit(resource.RLIMIT_AS, linux.address_space_bytes() + _MEMORY_BYTES)
            linux.limit(resource.RLIMIT_CPU, int(_TIME_S))
            os.write(write, json.dumps(measure()).encode())
        finally:
            os._exit(0)
    os.close(write)
    answered = select.select([read], [], [], _TIME_S)[0]
    text = os.read(read, 65536) if answered else b""
    os.close(read)
    if not text and answered:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        how = f"signal {-status}" if status < 0 else f"status {status}"
        raise ReferenceFailed(f"the module cannot be run: it ends its process with {how}")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if not answered:
        late = f"it was not done after {_TIME_S:.0f} s; make inputs smaller, or mend an endless loop"
        return {"too_large": late}
    try:
        return _OUTCOME.validate_json(text)
    except ValidationError:
        raise ReferenceFailed("the module cannot be run: it writes to files that it did not open") from None
