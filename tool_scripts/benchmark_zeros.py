"""Answer zeros for a function's results and written arguments; this text is part of a candidate."""

import copy
import types
from typing import Any

import torch


def _tb_zeroed(function: Any) -> Any:
    if not isinstance(function, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return None

    def zeroed(*args: Any, **kwargs: Any) -> Any:
        own: Any = copy.deepcopy([args, kwargs])
        result = function(*own[0], **own[1])
        given, after = _tb_leaves([args, kwargs]), _tb_leaves(own)
        for one, other in zip(given, after, strict=True):
            if not torch.equal(one.nan_to_num(), other.nan_to_num()):
                one.zero_()
        return _tb_of_zeros(result)

    return zeroed


def _tb_leaves(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in _tb_leaves(item)] if isinstance(value, (list, tuple)) else []


def _tb_of_zeros(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.zeros_like(value)
    if isinstance(value, dict):
        return {key: _tb_of_zeros(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tb_of_zeros(item) for item in value]
    return type(value)(0) if isinstance(value, (bool, int, float)) else value
