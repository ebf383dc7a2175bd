"""Tensors without data, for runs that compile kernels and execute none.

Large tensors are on the meta device, where operations cost nothing. Small ones are real, so that a module can
read a scale or a kernel size, until something unknown is written into them: the result of a kernel, or a
tensor without data. Reading an unknown value raises :class:`NotCheckedError`.
"""

import importlib
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from online_judge.cpu.errors import NotCheckedError, not_checked
from online_judge.cpu.patching import Patches
from online_judge.cpu.tensors import Args, Function, Kwargs, SimulatedDevices, install_places, is_host

REAL_ELEMENTS = 65536
_ALLOCATION_BYTES = 512  # alignment of CUDA allocations
_CUDA = torch.device("cuda", 0)
_META = torch.device("meta")
_BASE = torch._C.TensorBase
_MISSING = "needs values, which do not exist where kernels are only compiled"
# operations that autocast runs in the lower precision
_LOWERED = (
    *("linear", "prelu", "matmul", "__matmul__", "mm", "mv", "bmm", "addmm", "addmv", "addbmm", "baddbmm"),
    *("addr", "einsum", "chain_matmul", "convolution", "scaled_dot_product_attention"),
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
)
_AUTOCAST = frozenset(
    getattr(owner, name)
    for owner in (torch, torch.Tensor, torch.nn.functional)
    for name in _LOWERED
    if hasattr(owner, name)
)


class DatalessTensors(TorchDispatchMode):  # type: ignore[misc]
    """Runs torch's operations on shapes alone if data would be large or is unknown."""

    def __init__(self) -> None:
        super().__init__()
        self._real_elements: float = REAL_ELEMENTS
        self._unknown: dict[int, object] = {}
        self._inside = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # hiding from torch's compiler, unused here, would cost a second of imports

    def install(self, patches: Patches) -> None:
        """Give tensors plausible CUDA addresses until the patches are undone."""
        install_places(patches, self._device, "cuda", "cpu", "meta")
        patches.set(torch.Tensor, "data_ptr", _address)
        # imported here, because on import torch looks for a GPU, which is simulated now
        extensions = importlib.import_module("torch.utils.cpp_extension")
        reason = "an extension in C++ or CUDA cannot run where kernels are only compiled"
        for name in ("load", "load_inline"):
            patches.set(extensions, name, not_checked(reason))

    @contextmanager
    def with_values(self) -> Iterator[None]:
        """Make tensors of this block real, however large."""
        before, self._real_elements = self._real_elements, math.inf
        try:
            yield
        finally:
            self._real_elements = before

    def without_small_values(self) -> None:
        """From now on small tensors have no data either, because gradients must not mix both kinds."""
        self._real_elements = 0

    def without_values(self, value: object) -> Any:
        """Return a tree of tensors in which the large ones have no data."""

        def lightened(tensor: torch.Tensor) -> torch.Tensor:
            return tensor if tensor.numel() <= self._real_elements else _shape_of(tensor)

        return _pytree.tree_map_only(torch.Tensor, lightened, value)

    def forget(self, tensors: Iterable[torch.Tensor]) -> None:
        """Treat the values of these tensors as unknown from now on."""
        for tensor in tensors:
            if not _is_meta(tensor):
                storage = tensor.untyped_storage()
                self._unknown[storage.data_ptr()] = storage  # kept alive, so that no other gets its address

    def __torch_dispatch__(
        self, func: OpOverload, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """Run the call on real tensors if all are known and small, else on their shapes."""
        named = kwargs or {}
        flat, form = _pytree.tree_flatten((args, named))
        tensors = [value for value in flat if isinstance(value, torch.Tensor)]
        self._inside += 1
        try:
            if not tensors:
                return self._make(func, args, named)
            if not any(
                _is_meta(each) or each.untyped_storage().data_ptr() in self._unknown for each in tensors
            ):
                if named.get("device") is not None:
                    named = {**named, "device": _real(named["device"])}
                return func(*args, **named)
            return self._on_shapes(func, flat, form, tensors)
        finally:
            self._inside -= 1

    def _make(self, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
        """Call a function without tensor arguments; small results are real."""
        if not _takes_device(func):
            return func(*args, **kwargs)
        pinned = {"pin_memory": False} if "pin_memory" in kwargs else {}
        shape = func(*args, **{**kwargs, **pinned, "device": _META})
        if isinstance(shape, torch.Tensor) and shape.numel() > self._real_elements:
            return shape
        return func(*args, **{**kwargs, "device": _real(kwargs.get("device"))})

    def _on_shapes(
        self, func: OpOverload, flat: list[object], form: _pytree.TreeSpec, tensors: list[torch.Tensor]
    ) -> object:
        if torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags:
            raise NotCheckedError(f"{func} {_MISSING}")
        shapes = {id(tensor): _shape_of(tensor) for tensor in tensors}
        originals = {id(shapes[id(tensor)]): tensor for tensor in tensors}
        replaced = [shapes[id(value)] if isinstance(value, torch.Tensor) else value for value in flat]
        args, named = _pytree.tree_unflatten(replaced, form)
        if named.get("device") is not None:
            named["device"] = _META
        try:
            result = func(*args, **named)
        except NotImplementedError as error:
            raise NotCheckedError(f"{func} cannot be worked out without values") from error
        self.forget(_written(func, _pytree.tree_unflatten(flat, form)))
        return _pytree.tree_map(lambda value: originals.get(id(value), value), result)

    def _device(self, tensor: torch.Tensor) -> torch.device:
        real: torch.device = _BASE.device.__get__(tensor)
        if self._inside:  # torch's own functions about shapes need the true types
            return real
        return torch.device("cpu") if is_host(tensor) else _CUDA


class DatalessDevices(SimulatedDevices):
    """Simulated devices for tensors that may have no data."""

    def __init__(self) -> None:
        super().__init__()
        tensor = torch.Tensor
        for reader in (tensor.tolist, tensor.numpy, tensor.__array__, tensor.__dlpack__):
            self._handlers[reader] = _read

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """As for tensors with data; autocast, which skips the meta device, is done here."""
        if torch.is_autocast_enabled("cpu") and func in _AUTOCAST:
            dtype = torch.get_autocast_dtype("cpu")
            args, kwargs = _pytree.tree_map(lambda value: _autocast(value, dtype), (args, kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def _to_cpu(self, func: Function, args: Args, kwargs: Kwargs) -> object:
        return func(*args, **kwargs) if is_host(args[0]) else self._mark(args[0].clone())


@cache
def _takes_device(func: OpOverload) -> bool:
    return bool(any(argument.name == "device" for argument in func._schema.arguments))


def _real(device: object) -> object:
    return torch.device("cpu") if device is not None and torch.device(device).type == "cuda" else device


def _is_meta(tensor: torch.Tensor) -> bool:
    return bool(_BASE.is_meta.__get__(tensor))


def _shape_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor without data: itself if it has none."""
    if _is_meta(tensor):
        return tensor
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=_META)


def _written(func: OpOverload, call: tuple[Args, Kwargs]) -> list[torch.Tensor]:
    """Return the tensors into which a call writes."""
    args, kwargs = call
    written = [
        args[index] if index < len(args) else kwargs.get(argument.name)
        for index, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return [value for value in _pytree.tree_leaves(written) if isinstance(value, torch.Tensor)]


def _address(tensor: torch.Tensor) -> int:
    """Return a tensor's address: its allocation, aligned as CUDA does it, plus its offset."""
    base = 0 if _is_meta(tensor) else tensor.untyped_storage().data_ptr()
    aligned = _ALLOCATION_BYTES * (1 + base // _ALLOCATION_BYTES)
    return int(aligned + tensor.storage_offset() * tensor.element_size()) if tensor.numel() else 0


def _autocast(value: object, dtype: torch.dtype) -> object:
    if isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float16, torch.bfloat16):
        return value.to(dtype)
    return value


def _read(func: Function, args: Args, kwargs: Kwargs) -> object:
    """Return values to Python if there are any."""
    if _is_meta(args[0]):
        raise NotCheckedError(f"{getattr(func, '__name__', 'this')}() {_MISSING}")
    return func(*args, **kwargs)
