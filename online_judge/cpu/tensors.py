"""CPU tensors that look like CUDA tensors.

Every tensor reports ``cuda:0`` except those that the candidate put on the CPU on purpose: results of
``.cpu()``, ``.to("cpu")``, factories with ``device="cpu"``, and results computed from those alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from online_judge.cpu.patching import Patches

_CUDA = torch.device("cuda", 0)
_MARK = "_simulated_host"
_BASE = torch._C.TensorBase

UNINITIALISED = {
    torch.empty,
    torch.empty_like,
    torch.empty_permuted,
    torch.empty_strided,
    torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}

_ALLOCATING = {
    functional.embedding_bag,
    functional.fractional_max_pool2d,
    functional.fractional_max_pool2d_with_indices,
    functional.fractional_max_pool3d,
    functional.fractional_max_pool3d_with_indices,
    functional.multi_head_attention_forward,
}
"""Functions in Python that allocate tensors on the device of their arguments."""
_OVERRIDES = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")

Function = Callable[..., Any]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]


def is_host(value: object) -> bool:
    """Return True for a tensor that stays on the simulated machine's CPU."""
    return isinstance(value, torch.Tensor) and _MARK in value.__dict__


def install_properties(patches: Patches) -> None:
    """Make tensors report their device as CUDA tensors do."""
    install_places(patches, _device, "cuda", "cpu")
    patches.set(torch.Tensor, "get_device", lambda tensor: 0 if _device(tensor).type == "cuda" else -1)
    patches.set(torch.Tensor, "record_stream", lambda tensor, stream: None)
    patches.set(DeviceContext, "__torch_function__", _default_device(DeviceContext.__torch_function__))
    patches.set(torch, "load", _load(torch.load))
    # else a backward pass would run without the mode, which torch suspends while it handles a function
    patches.set(torch.autograd, "has_torch_function", lambda tensors: False)


def install_places(patches: Patches, device: Callable[[torch.Tensor], torch.device], *types: str) -> None:
    """Make ``Tensor.device``, ``is_cuda`` and the like of these types follow ``device``."""
    patches.set(torch.Tensor, "device", property(device))
    for kind in types:
        patches.set(torch.Tensor, f"is_{kind}", property(partial(_is_on, kind, device)))


def _is_on(kind: str, device: Callable[[torch.Tensor], torch.device], tensor: torch.Tensor) -> bool:
    return bool(device(tensor).type == kind)


def _device(tensor: torch.Tensor) -> torch.device:
    real: torch.device = _BASE.device.__get__(tensor)
    return real if real.type != "cpu" or _MARK in tensor.__dict__ else _CUDA


class SimulatedDevices(TorchFunctionMode):  # type: ignore[misc]
    """Runs torch's functions for ``cuda`` on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self._marks = False
        tensor = torch.Tensor
        self._handlers: dict[object, Callable[[Function, Args, Kwargs], object]] = {
            tensor.cuda: lambda func, args, kwargs: args[0].clone() if is_host(args[0]) else args[0],
            tensor.cpu: self._to_cpu,
            tensor.to: self._to,
            tensor.pin_memory: lambda func, args, kwargs: args[0],
            tensor.is_pinned: lambda func, args, kwargs: is_host(args[0]),
            tensor.data.__set__: self._set_data,
            torch._C._nn._parse_to: _unchanged,
            torch.device: _unchanged,
            tensor.type: self._type,
            torch._VF._pack_padded_sequence: self._pack,
            tensor.backward: self._backward,
            **dict.fromkeys(_ALLOCATING, self._in_the_mode),
        }

    def __torch_function__(
        self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        named = kwargs or {}
        if (handler := self._handlers.get(func)) is not None:
            return handler(func, args, named)
        wanted = named.get("device")
        if wanted is not None:
            named = {**named, "device": _redirect(wanted)}
        if named.get("pin_memory"):
            named = {**named, "pin_memory": False}
        if any(isinstance(arg, torch.device) for arg in args):
            wanted = next(arg for arg in args if isinstance(arg, torch.device))
            args = tuple(_redirect(arg) if isinstance(arg, torch.device) else arg for arg in args)
        result = func(*args, **named)
        if func in UNINITIALISED:
            poison(result)
            if result.dtype == torch.bool:
                result.fill_(True)
        host = self._marks and _only_host(args, named) if wanted is None else _is_cpu(wanted)
        return self._mark(result) if host and not any(result is arg for arg in args) else result

    def _to_cpu(self, func: Function, args: Args, kwargs: Kwargs) -> object:
        if is_host(args[0]) or _BASE.device.__get__(args[0]).type != "cpu":
            return func(*args, **kwargs)
        return self._mark(args[0].clone())

    def _to(self, func: Function, args: Args, kwargs: Kwargs) -> object:
        tensor, rest = args[0], args[1:]
        target = kwargs.get("device")
        for given in (*rest[:1], kwargs.get("other")):
            if target is None:
                target = _target(given)
        if target is None:
            result = func(*args, **kwargs)
            return self._mark(result) if is_host(tensor) and result is not tensor else result
        if rest and not isinstance(rest[0], torch.Tensor):
            rest = (_redirect(rest[0]), *rest[1:])
        if "device" in kwargs:
            kwargs = {**kwargs, "device": _redirect(kwargs["device"])}
        result = func(tensor, *rest, **kwargs)
        if result is tensor and _is_cpu(target) != is_host(tensor):
            result = tensor.clone()
        return self._mark(result) if _is_cpu(target) and result is not tensor else result

    def _set_data(self, func: Function, args: Args, kwargs: Kwargs) -> None:
        func(*args, **kwargs)
        if is_host(args[1]):
            self._mark(args[0])
        else:
            args[0].__dict__.pop(_MARK, None)

    def _type(self, func: Function, args: Args, kwargs: Kwargs) -> object:
        tensor = args[0]
        if len(args) == 1 and not kwargs:
            name: str = func(tensor)
            return name if is_host(tensor) else name.replace("torch.", "torch.cuda.", 1)
        if len(args) > 1 and isinstance(args[1], str):
            args = (tensor, args[1].replace("torch.cuda.", "torch.", 1), *args[2:])
        return func(*args, **kwargs)

    def _backward(self, func: Function, args: Args, kwargs: Kwargs) -> None:
        named = {"grad_tensors" if name == "gradient" else name: value for name, value in kwargs.items()}
        with self:  # torch suspends it while it handles a function
            torch.autograd.backward(*args, **named)

    def _in_the_mode(self, func: Function, args: Args, kwargs: Kwargs) -> object:
        """Call a function of torch so that the mode sees what it calls, but not the function itself again."""
        with Patches() as patches, self:
            for name in _OVERRIDES:
                patches.set(functional, name, lambda *_: False)
            return func(*args, **kwargs)

    def _pack(self, func: Function, args: Args, kwargs: Kwargs) -> object:
        packed, sizes = func(*args, **kwargs)
        return packed, self._mark(sizes)  # torch wants these on the CPU

    def _mark(self, result: object) -> object:
        if isinstance(result, torch.Tensor):
            self._marks = True
            result.__dict__[_MARK] = True
        elif isinstance(result, tuple | list):
            for item in result:
                self._mark(item)
        return result


def poison(tensor: torch.Tensor) -> None:
    """Fill new memory, except booleans, with NaN or the largest integer, which shows in results."""
    if tensor.is_floating_point() or tensor.is_complex():
        tensor.fill_(float("nan"))
    elif tensor.dtype != torch.bool:
        tensor.fill_(torch.iinfo(tensor.dtype).max)


def _unchanged(func: Function, args: Args, kwargs: Kwargs) -> object:
    """Pass names of devices through; nothing is made there."""
    return func(*args, **kwargs)


def _default_device(original: Function) -> Function:
    """Ignore ``with torch.device("cuda")``, which is the default here."""

    def __torch_function__(  # noqa: N807
        context: DeviceContext, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        if context.device.type == "cuda":
            return func(*args, **(kwargs or {}))
        return original(context, func, types, args, kwargs)

    return __torch_function__


def _load(original: Function) -> Function:
    def load(f: object, map_location: object = None, *args: object, **kwargs: object) -> object:
        return original(f, _redirect(map_location), *args, **kwargs)

    return load


def _target(value: object) -> object:
    """Return the device in the first argument of ``Tensor.to``; None if it is a dtype."""
    if isinstance(value, torch.Tensor):
        return _device(value)
    is_device = isinstance(value, torch.device | str | int) and not isinstance(value, bool)
    return value if is_device else None


def _redirect(device: object) -> object:
    """Return the device that does the work: the CPU for every CUDA device."""
    if isinstance(device, int) and not isinstance(device, bool):
        return "cpu"
    return "cpu" if str(device).startswith("cuda") else device


def _is_cpu(device: object) -> bool:
    return str(device).startswith("cpu")


def _only_host(args: Args, kwargs: Kwargs) -> bool:
    """Return True if tensors were given and none of them is a CUDA tensor."""
    items = [item for value in args if isinstance(value, tuple | list) for item in value]
    tensors = [value for value in (*args, *kwargs.values(), *items) if isinstance(value, torch.Tensor)]
    return bool(tensors) and all(is_host(tensor) for tensor in tensors)
