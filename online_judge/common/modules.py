"""Load modules from source, seed, and apply the precision policy, alike on both sides."""

import contextlib
import importlib.util
import linecache
import random
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import torch

from adaexplore.core.wire import DtypeName, Tf32Policy

REFERENCE_MODULE = "reference"
DTYPES: dict[DtypeName, torch.dtype | None] = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "native": None,  # as the problem makes them
}
_COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}


def seed_everything(seed: int) -> None:
    """Seed torch (CPU and CUDA), NumPy and ``random``.

    ``torch.manual_seed`` is avoided: it formats the stack for each unused kind of device, 0.5 ms per call.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    numpy.random.seed(seed % 2**32)
    random.seed(seed)


def allows_tf32(policy: Tf32Policy) -> bool:
    """Return True if eager float32 products may use TF32 under a policy."""
    return policy == "on"


def apply_precision(policy: Tf32Policy) -> None:
    """Allow TF32 in eager fp32 matmul and convolution only under ``on``.

    Triton's side of the policy is an environment variable, which the sandbox sets.
    """
    cudnn = torch.backends.cudnn
    for owner in (torch.backends, cudnn, cudnn.conv, cudnn.rnn):
        owner.fp32_precision = "none"  # the names below cannot be read while these disagree with them
    torch.backends.cuda.matmul.allow_tf32 = cudnn.allow_tf32 = allows_tf32(policy)


def load_file(file: str | Path, name: str) -> types.ModuleType:
    """Import ``file`` as the module ``name``, replacing any other; raises whatever the import raises."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_source(source: str, name: str) -> types.ModuleType:
    """Run ``source`` as a module whose lines show in tracebacks; raises whatever it raises."""
    module = types.ModuleType(name)
    file = f"<{name}>"
    module.__file__ = file
    sys.modules[name] = module  # dataclasses and pickle look up their module
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)  # no future imports of this file
    return module


def cast_module(model: torch.nn.Module, dtype: torch.dtype | None) -> torch.nn.Module:
    """Return ``model`` in ``dtype``, including plain tensors that its modules hold as attributes."""
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):
                setattr(module, name, cast_floating(value, dtype))
    return _cast_weights(model, dtype)


def _cast_weights(model: torch.nn.Module, dtype: torch.dtype | None) -> torch.nn.Module:
    """As ``model.to(dtype)``, which would drop the imaginary part of complex weights."""
    return model._apply(lambda weight: cast_floating(weight, dtype))


def in_precision(model: torch.nn.Module, dtype: DtypeName) -> torch.nn.Module:
    """Return ``model`` in the precision of a request; plain tensors are cast only to half precision."""
    wanted = DTYPES[dtype]
    return cast_module(model, wanted) if dtype in ("fp16", "bf16") else _cast_weights(model, wanted)


def candidate_in_precision(model: Any, dtype: DtypeName) -> Any:
    """Return a candidate in the precision of a request; in fp32 it may keep narrower weights on purpose."""
    if isinstance(model, torch.nn.Module) and dtype in ("fp16", "bf16"):
        return in_precision(model, dtype)
    return model


def share_parameters(model: torch.nn.Module, other: torch.nn.Module) -> None:
    """Let ``model`` share the memory of another model's parameters; both are constructed alike."""
    theirs = dict(other.named_parameters())
    for name, held in model.named_parameters():
        held.data = theirs[name].data


def cast_floating(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """Return ``tensor`` in ``dtype`` if it is floating and ``dtype`` is not None, else unchanged.

    A complex tensor's parts get that dtype, unless it has 16 bits: few operations take such complex numbers.
    """
    if tensor.is_complex():
        dtype = None if dtype is None else _COMPLEX.get(dtype)
        return tensor if dtype is None else tensor.to(dtype)
    return tensor if dtype is None or not tensor.is_floating_point() else tensor.to(dtype)


def is_float8(tensor: torch.Tensor) -> bool:
    return bool(tensor.is_floating_point()) and tensor.element_size() == 1


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return float8 exactly in float32, because few operations accept float8; other tensors stay."""
    return tensor.to(torch.float32) if is_float8(tensor) else tensor


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return float8, which few operations take, as bytes in the same memory; wider tensors stay."""
    return tensor.view(torch.uint8) if is_float8(tensor) else tensor


def zeroed(tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return a copy with 0 where ``mask`` is True."""
    return bits(tensor).masked_fill(mask, 0).view(tensor.dtype)


def is_half(dtype: torch.dtype) -> bool:
    """Return True for floating numbers of 16 bits or fewer."""
    return dtype.is_floating_point and int(dtype.itemsize) <= 2


def buffers_of(model: object) -> dict[str, torch.Tensor]:
    """Return copies of a module's buffers for :func:`restore_buffers`."""
    if not isinstance(model, torch.nn.Module):
        return {}
    return {name: buffer.detach().clone() for name, buffer in model.named_buffers()}


def restore_buffers(model: object, saved: dict[str, torch.Tensor]) -> None:
    """Undo changes that forward calls made to buffers such as running statistics."""
    with torch.no_grad():
        for name, buffer in model.named_buffers() if isinstance(model, torch.nn.Module) else ():
            if name in saved:
                buffer.copy_(saved[name])


@contextlib.contextmanager
def new_tensors_filled() -> Iterator[None]:
    """Let ``torch.empty`` and the like fill new tensors with NaN, or with the largest integer."""
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about operations without a deterministic algorithm
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before, warn_only=warn_only)


@contextlib.contextmanager
def torch_defaults() -> Iterator[None]:
    """Restore global state of torch that a reference may change."""
    dtype = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_default_device(None)
        torch.set_grad_enabled(True)
        torch.use_deterministic_algorithms(False)
