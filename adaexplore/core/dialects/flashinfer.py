"""FlashInfer-Bench and SOL-ExecBench: a definition with its workloads becomes a problem file.

Both have the same JSON format (``schema``). The reference's ``run`` becomes ``Model``. Each workload becomes
an entry of ``get_workloads()`` with inputs drawn as in the benchmark; the text includes stored tensors. A
candidate is Python source with ``run``, or a solution's JSON; ``run`` returns the outputs or, in
destination-passing style, fills tensors that follow the inputs.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from adaexplore.core.dialects.schema import Definition, Solution, Tolerance, Workload
from adaexplore.core.dialects.workload_text import entry, fitting
from adaexplore.core.errors import TaskError
from adaexplore.core.files.inputs import first_fault, input_text
from adaexplore.core.text.syntax import parse
from adaexplore.core.wire import MAX_WORKLOADS

_Model = TypeVar("_Model", bound=BaseModel)
SOL_FILE = "definition.json"
_TEMPLATE = Path(__file__).parent / "templates" / "definitions.py"
_RATIOS: Mapping[str, float] = {"moe": 0.95}
"""Required share of correct elements in FlashInfer-Bench by ``op_type``; by default all."""
_PYTHON = {"python", "triton", "pytorch"}


def definitions(root: Path) -> dict[str, Path]:
    """Return the definitions below ``root``, by name: of a trace set, or of folders with one each.

    Folders without workloads are left out, because nothing can be judged on them.
    A second folder with the same name is named by its whole path.
    """
    found = {path.stem: path for path in sorted(root.glob("definitions/**/*.json"))}
    folders = [] if found else sorted(root.rglob(SOL_FILE))
    for path in (each for each in folders if _workload_file(each, root).is_file()):
        name = path.parent.name
        found["__".join(path.parent.relative_to(root).parts) if name in found else name] = path
    return found


def problem_source(text: str, path: Path, root: Path, data_bytes: int = 2**17) -> str:
    """Return the problem file for the definition in ``text``, read from ``path`` below ``root``.

    Workloads with more than ``data_bytes`` of stored tensors are left out, except the smallest one.

    Raises:
        TaskError: the definition or a workload cannot be used; the message names file and line.
    """
    definition = read_definition(text, path)
    listed = workloads(path, root)
    entries = []
    for number, workload in enumerate(listed, start=1):
        try:
            entries.append(entry(definition, workload, number, root))
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise TaskError(f"{_workload_file(path, root)}: workload {workload.uuid}: {error}") from error
    listing, left_out = fitting(entries, data_bytes)
    parts = [
        definition.reference.strip("\n"),
        _TEMPLATE.read_text(encoding="utf-8"),
        _returning("Model", definition, "run"),
        "def get_init_inputs():\n    return []\n",
        f"def get_workloads():{left_out}\n    return [\n{listing}    ]\n",
        "def get_inputs():\n    return get_workloads()[0]['get_inputs']()\n",
    ]
    tolerance = _tolerance(definition, listed, Tolerance() if path.name == SOL_FILE else None)
    if tolerance is not None:
        parts.append(f"TOLERANCE = {tolerance.model_dump()!r}\n")
    return "\n\n".join(parts)


def candidate_source(code: str, definition_text: str, path: Path) -> str:
    """Return the candidate ``code``, Python source or the JSON of a solution, as a module with ``ModelNew``.

    Raises:
        TaskError: the definition cannot be used, or the solution is not in Python.
    """
    definition = read_definition(definition_text, path)
    function, style = "run", None
    if code.lstrip().startswith("{"):
        solution = _read(Solution, _json(code, "kernel_code"), "kernel_code")
        code, function = _entry_source(solution), solution.spec.entry_point.partition("::")[2]
        style = solution.spec.destination_passing_style
    try:
        tree = parse(code)
    except (SyntaxError, ValueError):
        return code  # the judge reports the syntax error with its line
    if any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in tree.body):
        return code
    if style is None:
        arguments = next(
            (node.args for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function),
            None,
        )
        count = 0 if arguments is None else len(arguments.posonlyargs + arguments.args)
        style = count == len(definition.inputs) + len(definition.outputs)
    write = _filling if style else _returning
    module = write("ModelNew", definition, function)
    return "\n\n".join([code.rstrip("\n"), _TEMPLATE.read_text(encoding="utf-8"), module])


def read_definition(text: str, path: Path) -> Definition:
    """Return the definition in ``text``, read from ``path``; raise TaskError if it cannot be used."""
    return _read(Definition, _json(text, str(path)), str(path))


def workloads(path: Path, root: Path) -> list[Workload]:
    """Return the judged workloads of the definition in ``path``.

    Raises:
        TaskError: their file cannot be used or is empty; the message names file and line.
    """
    file = _workload_file(path, root)
    text = input_text(file, "workload file", TaskError, "a definition needs workloads")
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            where = f"{file}:{number}"
            data = _json(line, where)
            found.append(_read(Workload, data.get("workload", data), where))  # also of a trace
    if not found:
        raise TaskError(f"{file}: no workloads; a definition needs at least one")
    return found[:MAX_WORKLOADS]


def _returning(module: str, definition: Definition, function: str) -> str:
    """Return a module around a function that returns the outputs."""
    inputs = ", ".join(definition.inputs)
    return (
        f"class {module}(torch.nn.Module):\n"
        f"    def forward(self, {inputs}):\n"
        "        with torch.enable_grad():  # some references differentiate\n"
        f"            result = {function}({inputs})\n"
        f"        return _fi_in_order(result, {_names_and_dtypes(definition)}, {_device(definition)})\n"
    )


def _filling(module: str, definition: Definition, function: str) -> str:
    """Return a module around a function that fills outputs in destination-passing style."""
    inputs = ", ".join(definition.inputs)
    lines = [f"class {module}(torch.nn.Module):", f"    def forward(self, {inputs}):"]
    bound: set[str] = set()
    for name, tensor in definition.inputs.items():
        for place, axis in enumerate(tensor.shape or ()):
            if not axis.isdecimal() and definition.axes[axis].type == "var" and axis not in bound:
                bound.add(axis)
                lines.append(f"        {_axis(axis)} = {name}.shape[{place}]")
    for axis, kind in definition.in_order:
        if kind.type == "const":
            lines.append(f"        {_axis(axis)} = {kind.value}")
        elif kind.type == "expr":
            lines.append(f"        {_axis(axis)} = {_expression(kind.expression or '')}")
    device = _device(definition)
    outputs = []
    for name, tensor in definition.outputs.items():
        shape = "".join(f"{axis if axis.isdecimal() else _axis(axis)}, " for axis in tensor.shape or ())
        outputs.append(f"_out_{name}")
        made = f"torch.empty(({shape}), dtype=torch.{tensor.dtype}, device={device})"
        lines.append(f"        _out_{name} = {made}")
    lines.append(f"        {function}({inputs}, {', '.join(outputs)})")
    lines.append(f"        return [{', '.join(outputs)}]")
    return "\n".join(lines) + "\n"


def _device(definition: Definition) -> str:
    tensors = (f"{name}.device" for name, tensor in definition.inputs.items() if tensor.shape is not None)
    return next(tensors, "None")


def _axis(name: str) -> str:
    return f"_axis_{name}"


def _expression(text: str) -> str:
    """Return an expression of axes in terms of their variables; its value is an integer."""
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = _axis(node.id)
    return f"int({ast.unparse(tree)})"


def _names_and_dtypes(definition: Definition) -> str:
    pairs = (f"{name!r}: torch.{tensor.dtype}" for name, tensor in definition.outputs.items())
    return "{" + ", ".join(pairs) + "}"


def _tolerance(
    definition: Definition, workloads: list[Workload], default: Tolerance | None
) -> Tolerance | None:
    """Return the strictest tolerance of the workloads; None if outputs are compared in another way.

    ``default`` is SOL-ExecBench's tolerance for workloads without one; FlashInfer-Bench's depends on the
    operator.
    """
    given = [workload.tolerance for workload in workloads if workload.tolerance is not None]
    checks = [check for workload in workloads for check in workload.checks or ()]
    if any((check.type, check.mode) != ("numeric", "elementwise") for check in checks):
        return None
    given += checks
    if not given and default is not None:
        return default
    if not given:
        ratio = _RATIOS.get(definition.op_type or "", 1.0)
        return Tolerance(max_atol=1e-2, max_rtol=1e-2, required_matched_ratio=ratio, added=False)
    caps = [each.max_error_cap for each in given if each.max_error_cap is not None]
    return Tolerance(
        max_atol=min(each.max_atol for each in given),
        max_rtol=min(each.max_rtol for each in given),
        required_matched_ratio=max(each.required_matched_ratio for each in given),
        max_error_cap=min(caps, default=None),
    )


def _workload_file(path: Path, root: Path) -> Path:
    """Return the file of a definition's workloads: beside it, or at the same path below ``workloads``."""
    if path.name == SOL_FILE:
        return path.with_name("workload.jsonl")
    return root / "workloads" / path.relative_to(root / "definitions").with_suffix(".jsonl")


def _json(text: str, where: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{where}: not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise TaskError(f"{where}: expected a JSON object")
    return found


def _read(model: type[_Model], data: object, where: str) -> _Model:
    try:
        return model.model_validate(data)
    except (ValidationError, SyntaxError, RecursionError) as error:
        fault = first_fault(error) if isinstance(error, ValidationError) else error
        raise TaskError(f"{where}: {fault}") from error


def _entry_source(solution: Solution) -> str:
    languages = {*(solution.spec.languages or ()), *filter(None, [solution.spec.language])}
    if not languages or not languages <= _PYTHON:
        named = ", ".join(sorted(languages)) or "no language"
        raise TaskError(f"kernel_code: a solution in {named}; only Python and Triton are judged")
    if len(solution.sources) > 1:
        raise TaskError(f"kernel_code: the solution has {len(solution.sources)} files; put all into one")
    return solution.sources[0].content
