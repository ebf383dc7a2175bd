# Inputs and outputs of definitions.
import base64
import zlib

import torch


def _fi_in_order(result, outputs, device):
    """Return what ``run`` gives as tensors, in the order of ``outputs``, which are names and dtypes."""
    if isinstance(result, dict):
        result = [result[name] for name in outputs]
    elif not isinstance(result, (list, tuple)):
        result = [result]
    if len(result) != len(outputs):
        raise RuntimeError(f"run() gives {len(result)} outputs, not {len(outputs)}")
    return [
        value.detach() if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=dtype, device=device)
        for value, dtype in zip(result, outputs.values(), strict=True)
    ]


def _fi_random(shape, dtype):
    """Draw from the distribution that the benchmark uses for a dtype."""
    if dtype == torch.bool:
        return torch.randint(0, 2, shape).bool()
    if not dtype.is_floating_point:
        limits = {torch.int8: (-128, 128), torch.uint8: (0, 256)}
        return torch.randint(*limits.get(dtype, (-1024, 1024)), shape, dtype=dtype)
    if dtype.itemsize == 1:
        return torch.randn(shape).clamp(-2.0, 2.0).to(dtype)
    return torch.randn(shape, dtype=dtype)


def _fi_normal(shape, dtype, mean, std):
    return (torch.randn(shape) * std + mean).to(dtype)


def _fi_uniform(shape, dtype, low, high):
    return (torch.rand(shape) * (high - low) + low).to(dtype)


def _fi_constant(shape, dtype, value):
    return torch.full(shape, value, dtype=dtype)


def _fi_integer(shape, dtype, low, high):
    return torch.randint(int(low), int(high), shape, dtype=dtype)


def _fi_simplex(shape, dtype, axis, temperature):
    return torch.softmax(torch.randn(shape) / temperature, dim=axis).to(dtype)


def _fi_stored(shape, dtype, text):
    data = bytearray(zlib.decompress(base64.b85decode(text)))
    return torch.frombuffer(data, dtype=dtype).reshape(shape).to(torch.get_default_device())


def _fi_custom(function, axes, inputs):
    made = function(axes, torch.get_default_device())
    return inputs(made)
