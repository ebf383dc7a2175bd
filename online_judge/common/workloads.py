"""The input sets of a problem: ``get_workloads()``, else ``get_inputs()``, and the hidden ones."""

import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from adaexplore.core.wire import MAX_WORKLOADS, Workload
from online_judge.common import trees

_DEFAULT = "get_inputs"
_NAME_CHARS = 80
_INPUTS_CHARS = 300


@dataclass(frozen=True)
class InputSet:
    """One workload; ``draw`` makes its inputs."""

    name: str
    weight: float
    hidden: bool
    draw: Callable[[], object]

    def described(self, inputs: str) -> Workload:
        """Describe it for the gateway; shapes of hidden ones stay in this process."""
        shown = "" if self.hidden else inputs
        return Workload(name=self.name, weight=self.weight, hidden=self.hidden, inputs=shown)


def input_sets(module: types.ModuleType, hidden_source: str | None = None) -> tuple[InputSet, ...]:
    """Return the input sets of a loaded problem, the hidden ones last.

    ``hidden_source`` is run in a copy of the module's namespace. Raises ValueError for a wrong entry, or
    whatever the problem's code raises.
    """
    if hasattr(module, "get_workloads"):
        found = _read(module.get_workloads(), hidden=False)
    else:
        found = [InputSet(_DEFAULT, 1.0, False, module.get_inputs)]
    if hidden_source is not None:
        namespace = {name: value for name, value in vars(module).items() if name != "get_workloads"}
        exec(compile(hidden_source, "<hidden workloads>", "exec", dont_inherit=True), namespace)
        if "get_workloads" not in namespace:
            raise ValueError("the hidden workloads' source defines no get_workloads()")
        found += _read(namespace["get_workloads"](), hidden=True)
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        hidden = any(each.hidden for each in found if each.name == twice[0])
        name = "same name" if hidden else f"name {twice[0]!r}"
        raise ValueError(f"two workloads have the {name}; give each its own")
    if len(found) > MAX_WORKLOADS:
        raise ValueError(f"there are {len(found)} workloads; at most {MAX_WORKLOADS} are judged")
    return tuple(found)


def _read(listed: object, *, hidden: bool) -> list[InputSet]:
    if not isinstance(listed, list | tuple) or not listed:
        raise ValueError("get_workloads() must return a list of at least one dict")
    return [_entry(number, entry, hidden=hidden) for number, entry in enumerate(listed)]


def _entry(number: int, entry: object, *, hidden: bool) -> InputSet:
    def wrong(what: str) -> ValueError:
        return ValueError(f"get_workloads()[{number}] {what}")

    if not isinstance(entry, dict):
        raise wrong("is no dict")
    unknown = sorted(str(key) for key in entry.keys() - {"name", "get_inputs", "weight"})
    if unknown:
        raise wrong(f"has the unknown key {unknown[0]!r}; it may have name, get_inputs and weight")
    name, draw, weight = entry.get("name"), entry.get("get_inputs"), entry.get("weight", 1.0)
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _NAME_CHARS:
        raise wrong(f"needs a 'name': one line of at most {_NAME_CHARS} characters")
    if not callable(draw):
        raise wrong("needs 'get_inputs': a function without arguments that returns the inputs")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise wrong("has a 'weight' that is no positive number")
    return InputSet(name, float(weight), hidden, draw)


def description(inputs: Sequence[object], names: Sequence[str] = ()) -> str:
    """Return dtypes, shapes and plain values of inputs, such as ``float32[4096, 64], scale=3``.

    The last ones are keyword arguments of these ``names``.
    """
    titles = [""] * (len(inputs) - len(names)) + [f"{name}=" for name in names]
    text = ", ".join(title + _described(value) for title, value in zip(titles, inputs, strict=True))
    return text if len(text) <= _INPUTS_CHARS else text[: _INPUTS_CHARS - 3] + "..."


def _described(value: object) -> str:
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    leaves: list[torch.Tensor] = []
    trees.map_leaves(value, leaves.append)
    return f"({', '.join(map(_described, leaves))})"
