"""How large a reference is, found out before the CPU path runs it.

The reference is run on tensors without data in a child process; where that is not possible (its
control flow depends on values), on real ones, with little memory and little time.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from online_judge.common import modules, trees
from online_judge.sandbox import linux

_TIME_S = 60.0
_MEMORY_BYTES = 3 * 2**30


class TooLarge(Exception):
    """The reference is too large for the interpreter; the text says by which measure."""


class Died(Exception):
    """The reference ended the process that ran it; the text says how."""


@dataclass(frozen=True)
class Limits:
    """What one reference call may have: elements held, operations done."""

    elements: int
    work: float


class _WorkMeter(TorchDispatchMode):  # type: ignore[misc]
    """Counts the elements that operations produce, and stops a run that makes too many."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits
        self._made = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._made += _elements(result)
        if self._made > self._limits.work:
            raise TooLarge(
                f"its operations produce over {self._limits.work:.3g} elements, the limit without a GPU"
            )
        return result


def warm_up() -> None:
    """Import what the meters import when they are first used: two seconds that children then save."""
    importlib.import_module("torch._dynamo")


def check(source: str, limits: Limits) -> None:
    """Return if the reference is small enough; all trouble but size is left for the real run.

    Raises:
        TooLarge: it is not, or it needs too much memory or time to find out.
        Died: it ends its process.
    """
    for real in (False, True):
        outcome = _in_child(partial(_measure, source, limits, real=real))
        if "too_large" in outcome:
            raise TooLarge(outcome["too_large"])
        if "error" not in outcome:
            return


def _measure(source: str, limits: Limits, *, real: bool) -> dict[str, Any]:
    """Run the reference once under the meters; ``{}`` is within limits."""
    place = torch.device("cpu" if real else "meta")
    try:
        with torch.no_grad(), place, _WorkMeter(limits), FlopCounterMode(display=False) as flops:
            modules.seed_everything(0)
            module = modules.load_source(source, modules.REFERENCE_MODULE)
            inputs = list(module.get_inputs())
            _check_elements(_elements(inputs), limits)
            model = module.Model(*module.get_init_inputs())
            weights = list(model.state_dict().values()) if isinstance(model, torch.nn.Module) else []
            held = _elements(inputs) + _elements(weights)
            _check_elements(held, limits)
            _check_elements(held + _elements(model(*inputs)), limits)
            if flops.get_total_flops() > limits.work:
                return {
                    "too_large": f"one call takes {flops.get_total_flops():.3g} floating-point operations, "
                    f"the limit without a GPU is {limits.work:.3g}"
                }
    except TooLarge as error:
        return {"too_large": str(error)}
    except MemoryError:
        return {"too_large": f"it does not fit into {_MEMORY_BYTES / 2**30:.0f} GiB of memory"}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, the real run reports it
        if real and "DefaultCPUAllocator" in str(error):
            return {"too_large": f"it does not fit into {_MEMORY_BYTES / 2**30:.0f} GiB of memory"}
        return {"error": type(error).__name__}
    return {}


def _check_elements(count: int, limits: Limits) -> None:
    if count > limits.elements:
        raise TooLarge(
            f"inputs, weights and outputs have over {limits.elements} elements "
            f"({count} counted), the limit without a GPU"
        )


def _elements(value: Any) -> int:
    with contextlib.suppress(trees.UnsupportedTree):
        return sum(int(leaf.numel()) for leaf in trees.take_apart(value).leaves)
    return 0


def _in_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``work`` gives in a forked child.

    Raises:
        TooLarge: it takes too long.
        Died: the child ended without an answer.
    """
    read, write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        with _never_returning():
            os.close(read)
            linux.die_with_parent(signal.SIGKILL, parent)
            linux.limit(resource.RLIMIT_AS, linux.address_space_bytes() + _MEMORY_BYTES)
            linux.limit(resource.RLIMIT_CPU, int(_TIME_S))
            os.write(write, json.dumps(work()).encode())
    os.close(write)
    answered = select.select([read], [], [], _TIME_S)[0]
    text = os.read(read, 65536) if answered else b""
    os.close(read)
    if not text and answered:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        raise Died(f"it ends its process with {f'signal {-status}' if status < 0 else f'status {status}'}")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if not answered:
        raise TooLarge(f"it was not done after {_TIME_S:.0f} s")
    outcome: dict[str, Any] = json.loads(text)
    return outcome


@contextlib.contextmanager
def _never_returning() -> Iterator[None]:
    try:
        yield
    finally:
        os._exit(0)
