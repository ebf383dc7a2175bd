"""Loading modules from source, seeding, and the precision policy, the same on both sides."""

from __future__ import annotations

import contextlib
import importlib.util
import linecache
import random
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy
import torch

from adaexplore.core.cpu_limit import cpu_limit
from adaexplore.core.wire import DtypeName, Tf32Policy

REFERENCE_MODULE = "reference"
_IMPORT_CPU_S = 10.0
DTYPES: dict[DtypeName, torch.dtype | None] = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "native": None,  # as the problem makes them
}


def seed_everything(seed: int) -> None:
    """Seed torch (CPU and CUDA), NumPy and ``random``.

    ``torch.manual_seed`` formats the stack for each kind of device that is not in use, 0.5 ms a call.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    numpy.random.seed(seed % 2**32)
    random.seed(seed)


def apply_precision(policy: Tf32Policy) -> None:
    """Allow TF32 in eager fp32 matmul and convolution under ``on`` alone.

    Triton's side of the policy is an environment variable, which the sandbox sets.
    """
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = policy == "on"


def load_file(file: str | Path, name: str) -> types.ModuleType:
    """Import ``file`` as the module ``name``, in place of one of that name; raises whatever it raises."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_candidate(file: str | Path, name: str) -> types.ModuleType:
    """Import a candidate's file as :func:`load_file`, with a limit on the CPU time of that."""
    why = f"importing the module took {_IMPORT_CPU_S:g} s of CPU time; is there an endless loop in it?"
    with cpu_limit(_IMPORT_CPU_S, why):
        return load_file(file, name)


def load_source(source: str, name: str) -> types.ModuleType:
    """Run ``source`` as a module whose lines tracebacks can show; raises whatever it raises."""
    module = types.ModuleType(name)
    file = f"<{name}>"
    module.__file__ = file
    sys.modules[name] = module  # dataclasses and pickle look their module up
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)  # our future imports are ours
    return module


def cast_floating(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """``tensor`` in ``dtype`` if it is floating; others stay, and all do where ``dtype`` is None."""
    return tensor if dtype is None or not tensor.is_floating_point() else tensor.to(dtype)


def is_half(dtype: torch.dtype) -> bool:
    """Return True for floating numbers of 16 bits or fewer."""
    return dtype.is_floating_point and int(dtype.itemsize) <= 2


def buffers_of(model: object) -> dict[str, torch.Tensor]:
    """Return copies of a module's buffers for :func:`restore_buffers`."""
    if not isinstance(model, torch.nn.Module):
        return {}
    return {name: buffer.detach().clone() for name, buffer in model.named_buffers()}


def restore_buffers(model: object, saved: dict[str, torch.Tensor]) -> None:
    """Undo what forward calls did to buffers such as running statistics."""
    with torch.no_grad():
        for name, buffer in model.named_buffers() if isinstance(model, torch.nn.Module) else ():
            if name in saved:
                buffer.copy_(saved[name])


@contextlib.contextmanager
def torch_defaults() -> Iterator[None]:
    """Put back what a reference may change globally."""
    dtype = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_default_device(None)
        torch.set_grad_enabled(True)
        torch.use_deterministic_algorithms(False)
