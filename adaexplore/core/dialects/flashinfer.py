"""FlashInfer-Bench and SOL-ExecBench: a definition with its workloads becomes a problem file.

Both have the same JSON format (``schema``). The reference's ``run`` becomes ``Model``. Each workload becomes
an entry of ``get_workloads()`` with inputs drawn as in the benchmark; the text includes stored tensors. A
candidate is Python source with ``run``, or a solution's JSON; ``run`` returns the outputs or, in
destination-passing style, fills tensors that follow the inputs.
"""

import ast
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from adaexplore.core.dialects.schema import Definition, Solution, Tensor, Tolerance, Workload
from adaexplore.core.dialects.workload_text import entry, fitting, sizes
from adaexplore.core.errors import TaskError
from adaexplore.core.files.inputs import first_fault, input_text
from adaexplore.core.text.syntax import bound_names, parse, parse_expression, parsed, statements
from adaexplore.core.wire import MAX_WORKLOADS

_Model = TypeVar("_Model", bound=BaseModel)
SOL_FILE = "definition.json"
_TEMPLATE = Path(__file__).parent / "templates" / "definitions.py"
_RATIOS: Mapping[str, float] = {"moe": 0.95}
"""Required share of correct elements in FlashInfer-Bench by ``op_type``; by default all."""
_PYTHON = {"python", "triton", "pytorch"}
_PROBLEM_NAMES = {"Model", "get_init_inputs", "get_workloads", "get_inputs", "TOLERANCE"}
_ELEMENTS = ("numeric", "elementwise")


def definitions(root: Path) -> dict[str, Path]:
    """Return the definitions below ``root``, by name: of a trace set, or of folders with one each.

    Those without workloads are left out, because nothing can be judged on them, unless no definition of a
    trace set has any. A second folder with the same name is named by its whole path.
    """
    listed = sorted(root.glob("definitions/**/*.json"))
    folders = [] if listed else sorted(root.rglob(SOL_FILE))
    found = {path.stem: path for path in _with_workloads(listed, root) or listed}
    for path in _with_workloads(folders, root):
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
    make = definition.custom_inputs_entrypoint
    taken = sorted(_PROBLEM_NAMES & _bound(parse(definition.reference)))
    parts = [
        definition.reference.strip("\n"),
        _template("problems"),
        _function("_fi_run", "run", taken) + ("" if make is None else _function("_fi_make", make, taken)),
        _returning("Model", definition),
        "def get_init_inputs():\n    return []\n",
        f"def get_workloads():{left_out}\n    return [\n{listing}    ]\n",
        "def get_inputs():\n    return get_workloads()[0]['get_inputs']()\n",
    ]
    tolerance = _tolerance(definition, listed, sol=path.name == SOL_FILE)
    if tolerance is not None:
        parts.append(f"TOLERANCE = {tolerance.model_dump()!r}\n")
    elif "TOLERANCE" in taken:
        parts.append("TOLERANCE = None\n")
    return "\n\n".join(parts)


def candidate_source(code: str, definition_text: str, path: Path, root: Path) -> str:
    """Return the candidate ``code``, Python source or the JSON of a solution, as a module with ``ModelNew``.

    A source with the function is judged by it, else by its class ``ModelNew``.

    Raises:
        TaskError: the definition or the solution cannot be used.
    """
    definition = read_definition(definition_text, path)
    function, fills = "run", None
    code = code.removeprefix("\ufeff")
    if code.lstrip().startswith("{"):
        solution = _read(Solution, _json(code, "kernel_code"), "kernel_code")
        if solution.definition != definition.name:
            named = f"{solution.definition!r}, not for {definition.name!r}"
            raise TaskError(f"kernel_code: the solution is for the definition {named}")
        code, function = _entry_source(solution), solution.spec.entry_point.partition("::")[2]
        code = code.removeprefix("\ufeff")
        fills = solution.spec.destination_passing_style
    tree = parsed(code)
    if tree is None:
        return code  # the judge reports the syntax error with its line
    bound = _bound(tree)
    if "ModelNew" in bound and function not in bound:
        added = f"_fi_ordered(ModelNew, {_names_and_dtypes(definition)})\n"
    else:
        added = _calling(definition, tree, function, fills, path, root)
    return "\n\n".join([code.rstrip("\n"), _template("candidates"), added])


def read_definition(text: str, path: Path) -> Definition:
    """Return the definition in ``text``, read from ``path``, with its inputs in the order of ``run``.

    Raises:
        TaskError: it cannot be used.
    """
    definition = _read(Definition, _json(text, str(path)), str(path))
    arguments = _arguments(parse(definition.reference), "run")
    order = [] if arguments is None else [each.arg for each in arguments.args]
    if set(order) != set(definition.inputs):
        return definition
    return definition.model_copy(update={"inputs": {name: definition.inputs[name] for name in order}})


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


def _template(use: str) -> str:
    """Return the part of the template for all uses, and the one for ``use``."""
    common, *parts = _TEMPLATE.read_text(encoding="utf-8").split("# ---- for ")
    return common + next(part for part in parts if part.startswith(use)).removeprefix(f"{use}\n")


def _bound(tree: ast.Module) -> set[str]:
    return {name for node in statements(tree.body) for name in bound_names(node)}


def _function(name: str, value: str, taken: list[str]) -> str:
    """Return the binding of a function to a private name; it sees its own values of the names ``taken``."""
    if not taken:
        return f"{name} = {value}\n"
    listed, own = ", ".join(taken), f"{name}_own"
    return (
        f"{own} = [{listed}]\n{name}_inner = {value}\n\n\n"
        f"def {name}(*given):\n"
        f"    global {listed}\n"
        f"    before = [{listed}]\n"
        f"    [{listed}] = {own}\n"
        f"    try:\n        return {name}_inner(*given)\n"
        f"    finally:\n        [{listed}] = before\n\n\n"
    )


def _returning(module: str, definition: Definition) -> str:
    """Return a module around ``_fi_run`` that returns the outputs."""
    return f"{_head(module, definition)}        return {_returned(definition)}\n"


def _calling(
    definition: Definition, tree: ast.Module, function: str, fills: bool | None, path: Path, root: Path
) -> str:
    """Return a ``ModelNew`` around a candidate's function, which returns the outputs or fills them.

    If ``fills`` does not say which, the number of required arguments decides.
    """
    names = [*definition.inputs, *definition.outputs]
    arguments = _arguments(tree, function)
    if fills is None:
        fills = arguments is not None and _required(arguments) == len(names)
    bound = ""
    if function not in _bound(tree):  # it may still define it in another way
        example = f"{function}({', '.join(definition.inputs)})"
        said = f"the source defines no function {example} and no class ModelNew; define one of them"
        bound = f"try:\n    {function}\nexcept NameError:\n    raise AttributeError({said!r}) from None\n"
    by_keyword = [each.arg for each in arguments.kwonlyargs if each.arg in names] if arguments else []
    value = f"_fi_by_keyword({function}, {names}, {by_keyword})" if by_keyword else function
    bound += _function("_fi_run", value, sorted({"ModelNew"} & _bound(tree)))
    if not fills:
        return f"{bound}\n\n{_returning('ModelNew', definition)}"
    lines, table = _axis_lines(definition, path, root)
    shapes = "".join(f"({_shape(tensor)}), " for tensor in definition.outputs.values())
    outputs = _names_and_dtypes(definition)
    return (
        f"{bound}{table}\n\n{_head('ModelNew', definition)}{lines}"
        f"        return _fi_filled(_fi_run, {_given(definition)}, {outputs}, [{shapes}])\n"
    )


def _arguments(tree: ast.Module, function: str) -> ast.arguments | None:
    """Return a function's arguments, also after ``run = go`` or ``run = wrap(go)``; None if unknown."""
    found: dict[str, ast.arguments | None] = {}
    for node in statements(tree.body):
        match node:
            case ast.FunctionDef(name=name, args=arguments):
                found[name] = arguments
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(args=arguments)):
                found[name] = arguments
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Name(id=other) | ast.Call(args=[ast.Name(id=other)], keywords=[]),
            ):
                found[name] = found.get(other)
    return found.get(function)


def _required(arguments: ast.arguments) -> int:
    positional = len(arguments.posonlyargs + arguments.args) - len(arguments.defaults)
    return positional + arguments.kw_defaults.count(None)


def _head(module: str, definition: Definition) -> str:
    this = "_fi_self" if "self" in definition.inputs else "self"
    parameters = ", ".join([this, *definition.inputs])
    return f"class {module}(_fi_torch.nn.Module):\n    def forward({parameters}):\n"


def _returned(definition: Definition) -> str:
    return f"_fi_returned(_fi_run, {_given(definition)}, {_names_and_dtypes(definition)})"


def _given(definition: Definition) -> str:
    return f"({', '.join(definition.inputs)},)"


def _axis_lines(definition: Definition, path: Path, root: Path) -> tuple[str, str]:
    """Return the lines that set the axes of outputs, and the table of workloads if they need one.

    An axis that is in no input's shape has the size of the workload with these inputs.

    Raises:
        TaskError: the inputs do not determine the size of an axis.
    """
    shapes: dict[str, str] = {}
    for name, tensor in definition.inputs.items():
        for place, axis in enumerate(tensor.shape or ()):
            if not axis.isdecimal():
                shapes.setdefault(axis, f"{name}.shape[{place}]")
    needed = {axis for tensor in definition.outputs.values() for axis in tensor.shape or ()}
    lines: list[str] = []
    missing: list[str] = []
    for name, kind in reversed(definition.axes_in_order()):  # expressions before the axes in them
        if name not in needed:
            continue
        if kind.value is not None:
            lines.append(f"{_axis(name)} = {kind.value}")
        elif name in shapes:
            lines.append(f"{_axis(name)} = {shapes[name]}")
        elif kind.expression is not None:
            needed |= {*kind.used}
            lines.append(f"{_axis(name)} = {_expression(kind.expression)}")
        else:
            missing.append(name)
    table = ""
    if missing:
        keys, rows = _table(definition, missing, path, root)
        table = f"_fi_table = {rows}\n"
        lines.append(f"{''.join(f'{_axis(name)}, ' for name in missing)}= _fi_sizes(_fi_table, ({keys}))")
    return "".join(f"        {line}\n" for line in reversed(lines)), table


def _table(
    definition: Definition, axes: list[str], path: Path, root: Path
) -> tuple[str, dict[tuple[object, ...], list[int]]]:
    """Return the inputs that identify a workload, and the sizes of ``axes`` by their shapes and numbers."""
    listed = workloads(path, root)
    known = [
        name
        for name, tensor in definition.inputs.items()
        if tensor.shape is not None
        or all(name in each.inputs and _is_number(each.inputs[name].value) for each in listed)
    ]
    rows: dict[tuple[object, ...], list[int]] = {}
    for workload in listed:
        try:
            found = sizes(definition, workload)
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise TaskError(f"{path}: workload {workload.uuid}: {error}") from error
        key: list[object] = []
        for name in known:
            shape = definition.inputs[name].shape
            number = None if shape is not None else workload.inputs[name].value
            key.append(tuple(_size(axis, found) for axis in shape) if shape is not None else number)
        row = rows.setdefault(tuple(key), [found[axis] for axis in axes])
        for axis, size in zip(axes, row, strict=True):
            if size != found[axis]:
                reason = f"the size of the axis {axis!r} does not follow from the inputs"
                raise TaskError(f"{path}: {reason}; return the outputs instead of filling them")
    return "".join(f"{name}, " for name in known), rows


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _size(axis: str, found: Mapping[str, int]) -> int:
    return int(axis) if axis.isdecimal() else found[axis]


def _shape(tensor: Tensor) -> str:
    return "".join(f"{axis if axis.isdecimal() else _axis(axis)}, " for axis in tensor.shape or ())


def _axis(name: str) -> str:
    return f"_axis_{name}"


def _expression(text: str) -> str:
    """Return an expression of axes in terms of their variables; its value is an integer."""
    tree = parse_expression(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = _axis(node.id)
    return f"_fi_int({ast.unparse(tree)})"


def _names_and_dtypes(definition: Definition) -> str:
    pairs = (f"{name!r}: _fi_torch.{tensor.dtype}" for name, tensor in definition.outputs.items())
    return "{" + ", ".join(pairs) + "}"


def _tolerance(definition: Definition, workloads: list[Workload], *, sol: bool) -> Tolerance | None:
    """Return the strictest tolerance of the workloads; None if outputs are compared in another way.

    A workload without one has the default: SOL-ExecBench's, or FlashInfer-Bench's for the operator.
    """
    if any((each.type, each.mode) != _ELEMENTS for workload in workloads for each in workload.checks or ()):
        return None
    ratio = _RATIOS.get(definition.op_type or "", 1.0)
    flashinfer = Tolerance(max_atol=1e-2, max_rtol=1e-2, required_matched_ratio=ratio, added=False)
    given: list[Tolerance] = []
    for workload in workloads:
        own = [] if workload.tolerance is None else [workload.tolerance]
        own += workload.checks or ()
        given += own or [Tolerance() if sol else flashinfer]
    caps = [each.max_error_cap for each in given if each.max_error_cap is not None]
    return Tolerance(
        max_atol=min(each.max_atol for each in given),
        max_rtol=min(each.max_rtol for each in given),
        required_matched_ratio=max(each.required_matched_ratio for each in given),
        max_error_cap=min(caps, default=None),
        added=all(each.added for each in given),
    )


def _with_workloads(paths: list[Path], root: Path) -> list[Path]:
    return [path for path in paths if _workload_file(path, root).is_file()]


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
