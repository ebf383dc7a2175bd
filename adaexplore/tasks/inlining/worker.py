"""Runs in the user's interpreter: inline a problem, then compare both forms on equal inputs and weights.

``python -m adaexplore.tasks.inlining.worker REQUEST.json ANSWER.json``. One fork imports the packages and
runs the original; this process imports none of them and runs the inlined module, as a judge would.
"""

import importlib.util
import json
import os
import random
import sys
import traceback
import types
from collections.abc import Mapping
from importlib.abc import Loader
from pathlib import Path
from typing import Any

import torch

from adaexplore.core.dialects import arguments
from adaexplore.tasks.inlining.closure import inline
from adaexplore.tasks.inlining.modules import Modules, Refused, top_level

SEED = 20240229
LIMIT_BYTES = 24 * 1024
_REFERENCE = "reference"
Results = list[tuple[str, object]]
"""Tensors and numbers of one form, each with the words that name it."""


def main(request_path: Path, answer_path: Path) -> None:
    """Write the answer: ``text``, or ``error`` with the packages that could stay imports instead."""
    sys.path.append(sys.path.pop(0))  # the working directory
    request = json.loads(request_path.read_text())
    results = answer_path.with_suffix(".pt")
    torch.manual_seed(SEED)
    original = os.fork()
    if not original:
        _ends_here(lambda: _original(request, answer_path, results))
    _, status = os.waitpid(original, 0)
    if status or not answer_path.exists():
        return  # killed, or left by the package itself
    answer = json.loads(answer_path.read_text())
    if "text" not in answer:
        return
    if request["stay"]:
        _search(Path(request["path"]))
    try:
        expected = torch.load(results, weights_only=True)
        packages = set(answer["packages"])
        error = _difference(answer["text"], packages, expected, request["direction"])
    except BaseException as reason:  # noqa: BLE001 - the inlined text runs here
        error = f"its inlined source fails: {_described(reason)}"
    if error is not None:
        answer_path.write_text(json.dumps({"error": error, "packages": answer["packages"]}))


def _ends_here(function: Any) -> None:
    code = 1
    try:
        function()
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def _original(request: Mapping[str, Any], answer_path: Path, results: Path) -> None:
    """Run and inline the problem with its packages."""
    answer: dict[str, Any]
    try:
        called: set[tuple[str, int]] = set()
        sys.setprofile(lambda frame, *_: called.add((frame.f_code.co_filename, frame.f_code.co_firstlineno)))
        module = _load(Path(request["path"]), request["source"])
        found = run_problem(module, request["direction"])
        sys.setprofile(None)
        torch.save(found, results)
        for lean in (False, True):
            modules = Modules(module.__name__, frozenset(request["stay"]), called, lean=lean)
            inlined = inline(modules, request["wanted"])
            if inlined.size <= LIMIT_BYTES:
                break
        packages = dict.fromkeys([*inlined.packages(), *modules.packages()])
        answer = {"text": inlined.text, "packages": [*packages]}
        if inlined.size > LIMIT_BYTES:
            largest = ", ".join(f"{part} {size / 1024:.1f} KB" for part, size in inlined.largest()[:4])
            error = (
                f"the source that it needs from packages is {inlined.size / 1024:.1f} KB, and at most "
                f"{LIMIT_BYTES // 1024} KB can be inlined; largest: {largest}"
            )
            answer = {"error": error, "packages": [*packages]}
    except Refused as reason:
        answer = {"error": str(reason), "packages": [reason.package] if reason.package else []}
    except ModuleNotFoundError as reason:
        missing = top_level(reason.name or "")
        answer = {
            "error": f"{reason}; install it here, so that its source can be inlined",
            "packages": [missing],
        }
    except BaseException as reason:  # noqa: BLE001 - the user's code runs here
        answer = {"error": _described(reason), "packages": []}
    answer_path.write_text(json.dumps(answer))


def _load(path: Path, source: str) -> types.ModuleType:
    """Run the problem file as a module, within its package if its folder is one."""
    name = _search(path)
    spec = importlib.util.spec_from_loader(name, _Text(source), origin=str(path))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    if "." in name:
        importlib.import_module(name.rpartition(".")[0])
    sys.modules[name] = module
    exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    return module


def _search(path: Path) -> str:
    """Let imports find what lies beside the problem file; return the problem's module name."""
    folder, name = path.parent, path.stem if path.stem.isidentifier() else "problem"
    inside = (folder / "__init__.py").is_file()
    while (folder / "__init__.py").is_file():
        name, folder = f"{folder.name}.{name}", folder.parent
    other = None if inside else importlib.util.find_spec(name)
    hides = other is not None and other.origin != str(path)  # a package of the file's name
    sys.path.insert(len(sys.path) if hides else 0, str(folder))
    return name if inside else f"problem_{name}"


class _Text(Loader):
    """A loader that knows the source of one module, which is run elsewhere."""

    def __init__(self, source: str) -> None:
        self._source = source

    def get_source(self, name: str) -> str:
        return self._source


class _NoPackages:
    """Import nothing of the inlined packages, as on a judge without them."""

    def __init__(self, packages: set[str]) -> None:
        self._packages = packages

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if top_level(name) in self._packages:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)


def _difference(text: str, packages: set[str], expected: Results, direction: str) -> str | None:
    """Run the inlined module; return how its results differ, None if they are equal."""
    sys.meta_path.insert(0, _NoPackages(packages))
    module = types.ModuleType(_REFERENCE)
    module.__file__ = f"<{_REFERENCE}>"
    sys.modules[_REFERENCE] = module
    exec(compile(text, module.__file__, "exec", dont_inherit=True), vars(module))
    found = run_problem(module, direction)
    if [what for what, _ in found] != [what for what, _ in expected]:
        return "its inlined source gives other weights or outputs than the original"
    for (what, one), (_, other) in zip(found, expected, strict=True):
        if not _equal(one, other):
            return f"its inlined source differs from the original in {what}"
    return None


def _equal(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if one.dtype.is_floating_point or one.dtype.is_complex:
            return bool(torch.allclose(one, other, rtol=1e-5, atol=1e-7, equal_nan=True))
        return bool(torch.equal(one, other))
    return bool(one == other or one is other or (one != one and other != other))


def run_problem(module: Any, direction: str) -> Results:
    """Construct and call a problem's model with fixed seeds; return inputs, weights and outputs."""
    _seed(0)
    init = arguments.init_arguments(module)
    _seed(1)
    model = arguments.construct(module.Model, init)
    results = [*_leaves("the weight ", getattr(model, "state_dict", dict)())]
    draw = (
        module.get_inputs
        if hasattr(module, "get_inputs")
        else next(iter(module.get_workloads()))["get_inputs"]
    )
    _seed(2)
    readings = arguments.readings(draw(), getattr(model, "forward", model), "get_inputs()")
    results += _leaves("the input ", readings[0].values)
    number = arguments.decide(readings, lambda each: arguments.construct(model, each), "get_inputs()")
    _seed(3)
    with torch.set_grad_enabled(direction != "forward"):
        outputs = arguments.construct(model, readings[number])
    results += _leaves("the output ", outputs)
    if direction != "forward":
        tensors = [each for _, each in _leaves("", outputs) if isinstance(each, torch.Tensor)]
        torch.autograd.backward([each.sum() for each in tensors if each.requires_grad])
        parameters = model.named_parameters() if isinstance(model, torch.nn.Module) else ()
        results += [(f"the gradient of {name}", value.grad) for name, value in parameters]
    results += _leaves("the state after a call ", getattr(model, "state_dict", dict)())
    return [
        (what, value.detach().clone() if isinstance(value, torch.Tensor) else value)
        for what, value in results
    ]


def _leaves(what: str, value: Any) -> Results:
    """Return the tensors and plain values within ``value``, each with its place."""
    match value:
        case torch.Tensor() | bool() | int() | float() | complex() | str() | None:
            return [(what.rstrip(), value)]
        case dict():
            return [leaf for key, each in value.items() for leaf in _leaves(f"{what}{key} ", each)]
        case list() | tuple():
            return [leaf for number, each in enumerate(value) for leaf in _leaves(f"{what}{number} ", each)]
    held = getattr(value, "__dict__", None)
    return _leaves(what, dict(held)) if held else [(what.rstrip(), type(value).__qualname__)]


def _seed(number: int) -> None:
    torch.manual_seed(SEED + number)
    random.seed(SEED + number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(SEED + number)


def _described(reason: BaseException) -> str:
    """Return an exception in one line, with the last line of the user's code that raised it."""
    frames = [each for each in traceback.extract_tb(reason.__traceback__) if each.filename != __file__]
    text = " ".join(str(reason).split())[:300]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(reason).__name__}{': ' if text else ''}{text}{place}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
