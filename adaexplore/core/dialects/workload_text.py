"""Workloads of a definition as text: entries of ``get_workloads()`` with expressions for the inputs."""

from __future__ import annotations

import ast
import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.dialects.schema import Definition, Input, Tensor, Workload
from adaexplore.core.errors import TaskError
from adaexplore.core.files.inputs import input_bytes
from adaexplore.core.text.arithmetic import evaluate
from adaexplore.core.text.json_text import parse_json


@dataclass(frozen=True)
class Entry:
    """One entry of ``get_workloads()``: its text, and the bytes of stored tensors in it."""

    text: str
    data_bytes: int


def entry(definition: Definition, workload: Workload, number: int, root: Path) -> Entry:
    axes = _sizes(definition, workload)
    values = {}
    data_bytes = 0
    for name, tensor in definition.inputs.items():
        given = workload.inputs.get(name) or Input(type="random")
        values[name] = _value(definition, name, tensor, given, axes, root)
        data_bytes += len(values[name]) if given.type == "safetensors" else 0
    listed = ", ".join(values.values())
    if any(given.type == "custom" for given in workload.inputs.values()):
        function = definition.custom_inputs_entrypoint
        if function is None:
            raise ValueError("an input is custom, but the definition has no custom_inputs_entrypoint")
        scalars = {k: v.value for k, v in workload.inputs.items() if v.type == "scalar"}
        made = f"_fi_custom({function}, { ({**axes, **scalars})!r}, lambda made: [{listed}])"
    else:
        made = f"[{listed}]"
    sizes = " ".join(f"{name}={workload.axes[name]}" for name in workload.axes)
    name = f"{number} {sizes}"[:80].rstrip()
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


def _sizes(definition: Definition, workload: Workload) -> dict[str, int]:
    axes: dict[str, int] = {}
    for name, axis in definition.in_order:
        if axis.type == "expr":
            axes[name] = int(evaluate(ast.parse(axis.expression or "", mode="eval").body, axes))
        elif axis.value is not None:
            axes[name] = axis.value
        elif name in workload.axes:
            axes[name] = workload.axes[name]
        else:
            raise ValueError(f"it has no size for the axis {name}")
    return axes


def _value(
    definition: Definition, name: str, tensor: Tensor, given: Input, axes: Mapping[str, int], root: Path
) -> str:
    shape = [int(axis) if axis.isdecimal() else axes[axis] for axis in tensor.shape or ()]
    of = f"{shape}, torch.{tensor.dtype}"
    drawn = f"_fi_random({of})"
    match given.type:
        case "scalar":
            return repr(given.value)
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
        return f"torch.softmax({drawn}, dim=-1)"
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
        evaluate(ast.parse(each, mode="eval").body, axes) if isinstance(each, str) else each
        for each in wanted[generator.type]
    ]
    return ", ".join(map(repr, numbers))


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
    content = input_bytes(path, "safetensors file", TaskError, "download the benchmark's data")
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
    return f"_fi_stored({shape}, torch.{tensor.dtype}, {base64.b85encode(zlib.compress(data, 9)).decode()!r})"
