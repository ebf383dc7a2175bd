# Inputs and outputs of definitions.
import base64 as _fi_base64
import functools as _fi_functools
import zlib as _fi_zlib

import torch as _fi_torch

_fi_int, _fi_float = int, float  # an input may have the name of either


def _fi_returned(run, given, outputs):
    """Return the outputs of a function that returns them."""
    with _fi_torch.enable_grad():  # some references differentiate
        result = run(*given)
    return _fi_in_order(result, outputs, _fi_device(given))


def _fi_in_order(result, outputs, device):
    """Return what ``run`` gives as tensors, in the order of ``outputs``, which are names and dtypes."""
    if isinstance(result, dict):
        result = [result[name] for name in outputs]
    elif not isinstance(result, (list, tuple)):
        result = [result]
    if len(result) != len(outputs):
        raise RuntimeError(f"run() gives {len(result)} outputs, not {len(outputs)}")
    return [
        value.detach()
        if isinstance(value, _fi_torch.Tensor)
        else _fi_torch.tensor(value, dtype=dtype, device=device)
        for value, dtype in zip(result, outputs.values(), strict=True)
    ]


def _fi_device(given):
    """Return the device of the first tensor; without tensors, the GPU if there is one."""
    for value in given:
        if isinstance(value, _fi_torch.Tensor):
            return value.device
    return _fi_torch.device("cuda" if _fi_torch.cuda.is_available() else "cpu")


# ---- for problems

_FI_PART = 2**28  # elements drawn at a time, in float32, for a dtype of one byte


def _fi_random(shape, dtype):
    """Draw from the distribution that the benchmark uses for a dtype."""
    if dtype == _fi_torch.bool:
        return _fi_torch.randint(0, 2, shape).bool()
    if not dtype.is_floating_point:
        limits = {_fi_torch.int8: (-128, 128), _fi_torch.uint8: (0, 256)}
        return _fi_torch.randint(*limits.get(dtype, (-1024, 1024)), shape, dtype=dtype)
    if dtype.itemsize == 1:
        made = _fi_torch.empty(shape, dtype=dtype)
        for part in made.view(-1).split(_FI_PART):
            part.copy_(_fi_torch.randn(part.shape).clamp_(-2.0, 2.0))
        return made
    return _fi_torch.randn(shape, dtype=dtype)


def _fi_normal(shape, dtype, mean, std):
    return _fi_torch.randn(shape).mul_(std).add_(mean).to(dtype)


def _fi_uniform(shape, dtype, low, high):
    return _fi_torch.rand(shape).mul_(high - low).add_(low).to(dtype)


def _fi_constant(shape, dtype, value):
    return _fi_torch.full(shape, value, dtype=dtype)


def _fi_integer(shape, dtype, low, high):
    return _fi_torch.randint(int(low), int(high), shape, dtype=dtype)


def _fi_simplex(shape, dtype, axis, temperature):
    return _fi_torch.softmax(_fi_torch.randn(shape) / temperature, dim=axis).to(dtype)


def _fi_stored(shape, dtype, text):
    data = bytearray(_fi_zlib.decompress(_fi_base64.b85decode(text)))
    return _fi_torch.frombuffer(data, dtype=dtype).reshape(shape).to(_fi_torch.get_default_device())


def _fi_custom(function, axes, inputs):
    made = function(axes, _fi_torch.get_default_device())
    return inputs(made)


# ---- for candidates


def _fi_by_keyword(run, names, keywords):
    """Return ``run``, which takes ``keywords`` by keyword only, as a function of positional arguments."""

    def call(*values):
        pairs = list(zip(names, values, strict=False))  # without outputs if it returns them
        named = {name: value for name, value in pairs if name in keywords}
        return run(*(value for name, value in pairs if name not in keywords), **named)

    return call


def _fi_filled(run, given, outputs, shapes):
    """Return the outputs of a function that fills them."""
    device = _fi_device(given)
    made = [
        _fi_torch.empty(shape, dtype=dtype, device=device)
        for shape, dtype in zip(shapes, outputs.values(), strict=True)
    ]
    run(*given, *made)
    return made


def _fi_sizes(table, given):
    """Return the sizes of axes in the workload with these inputs: shapes of tensors, and numbers."""
    key = tuple(tuple(value.shape) if isinstance(value, _fi_torch.Tensor) else value for value in given)
    if key not in table:
        raise RuntimeError(f"no workload has inputs with the shapes and numbers {key}")
    return table[key]


def _fi_ordered(module, outputs):
    """Put the outputs of a module's ``forward`` in order."""
    forward = module.forward

    @_fi_functools.wraps(forward)
    def ordered(self, *given, **named):
        return _fi_in_order(forward(self, *given, **named), outputs, _fi_device(given))

    module.forward = ordered
