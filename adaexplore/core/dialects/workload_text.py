"""Workloads of a definition as text: entries of ``get_workloads()`` with expressions for the inputs."""

import base64
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.dialects.schema import Definition, Input, Tensor, Workload
from adaexplore.core.errors import TaskError
from adaexplore.core.files.inputs import input_bytes
from adaexplore.core.text.arithmetic import evaluate
from adaexplore.core.text.json_text import parse_json
from adaexplore.core.text.syntax import parse_expression

_MAX_STORED_BYTES = 16 * 2**30


@dataclass(frozen=True)
class Entry:
    """One entry of ``get_workloads()``: its text, and the bytes of stored tensors in it."""

    text: str
    data_bytes: int


def entry(definition: Definition, workload: Workload, number: int, root: Path) -> Entry:
    axes = sizes(definition, workload)
    _check_names(definition, workload)
    values = {}
    data_bytes = 0
    for name, tensor in definition.inputs.items():
        given = workload.inputs[name]
        values[name] = _value(definition, name, tensor, given, axes, root)
        data_bytes += len(values[name]) if given.type == "safetensors" else 0
    listed = ", ".join(values.values())
    if any(given.type == "custom" for given in workload.inputs.values()):
        function = definition.custom_inputs_entrypoint
        if function is None:
            raise ValueError("an input is custom, but the definition has no custom_inputs_entrypoint")
        known = {**axes, **{k: v.value for k, v in workload.inputs.items() if v.type == "scalar"}}
        numbers = ", ".join(f"{name!r}: {_number(value)}" for name, value in known.items())
        made = f"_fi_custom(_fi_make, {{{numbers}}}, lambda made: [{listed}])"
    else:
        made = f"[{listed}]"
    listed_axes = " ".join(f"{name}={workload.axes[name]}" for name in workload.axes)
    name = f"{number} {listed_axes}"[:80].rstrip()
    text = f'        {{"name": {name!r}, "get_inputs": lambda: {made}, "weight": 1.0}},\n'
    return Entry(text, data_bytes)


def fitting(entries: list[Entry], data_bytes: int) -> tuple[str, str]:
    """Return the text of the entries whose stored tensors fit, and a comment about the others."""
    chosen: set[int] = set()
    used = 0
    for index in sorted(range(len(entries)), key=lambda index: entries[index].data_bytes):
        used += entries[index].data_bytes
        if chosen and used > data_bytes:
            break
        chosen.add(index)
    missing = len(entries) - len(chosen)
    comment = f"  # without {missing} of {len(entries)}, whose data is too large" if missing else ""
    return "".join(entries[index].text for index in sorted(chosen)), comment


def sizes(definition: Definition, workload: Workload) -> dict[str, int]:
    """Return the sizes of all axes in a workload; raise ValueError if one is unknown."""
    axes: dict[str, int] = {}
    for name, axis in definition.axes_in_order():
        if axis.type == "expr":
            axes[name] = int(evaluate(parse_expression(axis.expression or "").body, axes))
        elif axis.value is not None:
            axes[name] = axis.value
        elif name in workload.axes:
            axes[name] = workload.axes[name]
        else:
            raise ValueError(f"it has no size for the axis {name}")
    return axes


def _check_names(definition: Definition, workload: Workload) -> None:
    """Raise ValueError if the workload's inputs are not those of the definition."""
    missing = [name for name in definition.inputs if name not in workload.inputs]
    unknown = [name for name in workload.inputs if name not in definition.inputs]
    if missing:
        raise ValueError(f"it lacks the inputs {', '.join(missing)}" + _instead(unknown))
    if unknown:
        raise ValueError(f"the definition has no inputs {', '.join(unknown)}")


def _instead(unknown: list[str]) -> str:
    return f" and has the unknown inputs {', '.join(unknown)}" if unknown else ""


def _number(value: object) -> str:
    """Return a number as an expression; infinities and NaN have no literal."""
    unusual = isinstance(value, float) and not math.isfinite(value)
    return f"_fi_float({str(value)!r})" if unusual else repr(value)


def _value(
    definition: Definition, name: str, tensor: Tensor, given: Input, axes: Mapping[str, int], root: Path
) -> str:
    shape = [int(axis) if axis.isdecimal() else axes[axis] for axis in tensor.shape or ()]
    of = f"{shape}, _fi_torch.{tensor.dtype}"
    drawn = f"_fi_random({of})"
    match given.type:
        case "scalar":
            number = _number(given.value)
            if tensor.shape is None:
                return number
            if tensor.shape:
                raise ValueError(f"the input {name} has a shape, so its value cannot be a scalar")
            return f"_fi_torch.tensor({number}, dtype=_fi_torch.{tensor.dtype})"
        case "custom":
            return f"made[{name!r}]"
        case "safetensors":
            return _stored(name, tensor, given, shape, root)
        case "generated":
            assert given.generator is not None
            drawn = f"_fi_{given.generator.type}({of}, {_options(given, axes)})"
    if tensor.shape is None:
        return f"{drawn}.item()"
    if definition.op_type == "sampling" and name == "probs":
        return f"_fi_torch.softmax({drawn}, dim=-1)"
    return drawn


def _options(given: Input, axes: Mapping[str, int]) -> str:
    generator = given.generator
    assert generator is not None
    wanted: dict[str, list[float | str]] = {
        "normal": [generator.mean, generator.std],
        "uniform": [generator.low, generator.high],
        "constant": [generator.value],
        "integer": [generator.low, generator.high],
        "simplex": [generator.axis, generator.temperature],
    }
    numbers = [
        evaluate(parse_expression(each).body, axes) if isinstance(each, str) else each
        for each in wanted[generator.type]
    ]
    return ", ".join(map(_number, numbers))


_STORED = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
    "BOOL": "bool",
}  # fmt: skip


def _stored(name: str, tensor: Tensor, given: Input, shape: list[int], root: Path) -> str:
    """Return a tensor of a safetensors file as text: a header of JSON after its length, then the data."""
    path = root / (given.path or "")
    if not path.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"the path {given.path!r} leads out of {root}")
    content = input_bytes(
        path, "safetensors file", TaskError, "download the benchmark's data", _MAX_STORED_BYTES
    )
    size = int.from_bytes(content[:8], "little")
    try:
        entry = parse_json(content[8 : 8 + size])[given.tensor_key]
        begin, end = entry["data_offsets"]
        found = (_STORED.get(entry["dtype"]), list(entry["shape"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no tensor {given.tensor_key!r}") from error
    if found != (tensor.dtype, shape):
        raise ValueError(f"{name} should be {tensor.dtype}{shape}, in {path} it is {found[0]}{found[1]}")
    data = content[8 + size + begin : 8 + size + end]
    text = base64.b85encode(zlib.compress(data, 9)).decode()
    return f"_fi_stored({shape}, _fi_torch.{tensor.dtype}, {text!r})"
