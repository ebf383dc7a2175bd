"""Write synthesis/operators.json: the operators that the synthesiser composes problems of.

    python -m tool_scripts.make_operator_catalogue [--out FILE]

Elementwise operators come out of torch's own registry: every schema of one or two tensors is called on
probes, which tell whether it is elementwise, where it is defined, and in which range its results lie.
Operators with arguments have rules in operator_rules.yaml; every rule is called with drawn arguments and
its shapes are compared with torch's. What this torch lacks, or does otherwise, is left out and named.
"""

from __future__ import annotations

import argparse
import inspect
import json
import logging
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from adaexplore.core.files import write_text
from adaexplore.tasks.operators import Operator, written

logger = logging.getLogger(__name__)

RULES = Path(__file__).with_name("operator_rules.yaml")
CATALOGUE = Path(__file__).parents[1] / "synthesis" / "operators.json"
CHECKS = 6
"""Draws with which each rule is tried."""

_NAMESPACE = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn}
_UNFIT = (
    "alias", "backward", "copy", "cross_entropy", "detach", "dropout", "fft", "kl_div", "lift", "loss",
    "nextafter", "polynomial", "quantize", "rrelu", "scatter", "sparse", "sym_",
)  # fmt: skip
"""Parts of names of what is no operator to compute with, or one that takes whole numbers or minutes."""
# smooth stretches of the real line on which an operator may be defined, the widest first
_DOMAINS = {"": (-6.0, 6.0), "positive": (0.05, 6.0), "unit": (0.01, 0.99), "open": (-0.95, 0.95)}
_WIDE = 60.0
_LARGE = 1e4
_STEP = 0.05
_SIZES = (2, 3, 4, 8, 12, 16, 32, 64)


@dataclass(frozen=True)
class Found:
    """An elementwise operator of the registry."""

    name: str
    function: Callable[..., Any]
    source: str
    schema: str
    arity: int


def main(arguments: list[str] | None = None) -> int:
    """Write the catalogue; prints how many operators it has and what was left out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=CATALOGUE)
    args = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    entries = [entry for entry in ruled() if holds(entry)]
    entries += elementwise({entry.source for entry in entries})
    lines = [json.dumps(entry.model_dump(exclude_defaults=True), ensure_ascii=False) for entry in entries]
    version = torch.__version__.split("+")[0]
    text = f'{{"torch": "{version}", "operators": [\n' + ",\n".join(lines) + "\n]}\n"
    write_text(args.out, text)
    distinct = len({entry.source for entry in entries})
    print(f"{len(entries)} entries, {distinct} operators, torch {version}: {args.out}")  # noqa: T201
    return 0


def ruled() -> Iterator[Operator]:
    """The operators of operator_rules.yaml, with what torch says of them."""
    for family, rules in yaml.safe_load(RULES.read_text(encoding="utf-8")).items():
        for rule in rules:
            source = rule["source"].replace("F.", "torch.nn.functional.")
            source = f"torch.{source}" if source.startswith("nn.") else source
            known = {key: value for key, value in rule.items() if key not in ("in", "out", "source")}
            yield Operator(
                family=family,
                source=source,
                signature=_signature(source),
                operands=rule["in"],
                output=rule["out"],
                **known,
            )


def _signature(source: str) -> str:
    """As Python tells it, else the first of the registry's schemas; empty where torch lacks it."""
    found: Any = torch
    for part in source.split(".")[1:]:
        found = getattr(found, part, None)
    if found is None:
        return ""
    try:
        return f"{source}{inspect.signature(found)}"
    except (TypeError, ValueError):
        name = f"aten::{source.rsplit('.', 1)[1]}"
        schemas = [str(s) for s in torch._C._jit_get_all_schemas() if s.name == name]
        return schemas[0] if schemas else source


def holds(entry: Operator) -> bool:
    """Whether torch has it and gives the shapes that its rule says."""
    if not entry.signature:
        logger.warning("%s: this torch has no %s", entry.name, entry.source)
        return False
    rng = random.Random(entry.name)
    checked = 0
    for _ in range(4000):
        rule = next(iter(entry.operands.values()))
        shape = tuple(
            int(token) if token.isdecimal() else rng.choice(_SIZES)
            for token in rule.partition(":")[0].replace("*", rng.choice(("A", "A B"))).split()
        )
        bound = entry.bind(shape, rng)
        if bound is None:
            continue
        try:
            result = call(entry, bound)
            wanted = entry.result(bound)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            logger.warning("%s: fails on %s: %s", entry.name, shape, str(error).splitlines()[0])
            return False
        if tuple(result.shape) != wanted:
            logger.warning("%s: gives %s for %s, its rule %s", entry.name, tuple(result.shape), shape, wanted)
            return False
        if result.is_floating_point() != (entry.holds == "float"):
            logger.warning("%s: gives %s", entry.name, result.dtype)
            return False
        checked += 1
        if checked == CHECKS:
            return True
    logger.warning("%s: no shapes fit its rule", entry.name)
    return False


def call(entry: Operator, bound: dict[str, Any]) -> Any:
    """The operator's result on drawn operands."""
    given: dict[str, Any] = {}
    for name in entry.operands:
        kind, limit = entry.content(name, bound)
        given[name] = _drawn(kind, entry.shape_of(name, bound), limit)
    first = next(iter(given))
    if entry.needs in ("positive", "unit", "open"):
        given[first] = _drawn(entry.needs, tuple(given[first].shape), 0)
    numbers = {name: repr(value) for name, value in bound.items() if name != "*"}
    spaces = {**_NAMESPACE, **given}
    if entry.module:
        spaces["layer"] = eval(written(entry.module, numbers), dict(_NAMESPACE))
    with torch.no_grad():
        return eval(written(entry.call, numbers), spaces)


def _drawn(kind: str, shape: tuple[int, ...], limit: int) -> Any:
    match kind:
        case "int":
            return torch.randint(0, limit, shape)
        case "bool":
            return torch.rand(shape) < 0.5
        case "sign":
            return torch.randint(0, 2, shape) * 2.0 - 1.0
        case "positive" | "unit" | "open":
            low, high = _DOMAINS[kind]
            return torch.rand(shape) * (min(high, 2.0) - low) + low
    return torch.randn(shape)


def elementwise(taken: set[str]) -> list[Operator]:
    """Elementwise operators of the registry that are not ``taken``, each once, the plainest name."""
    results = [_trace(_function(source), arity) for source in taken for arity in (1, 2)]
    seen = [result for result in results if result is not None]
    entries = []
    for found in sorted(_registry(), key=lambda found: ("special" in found.source, len(found.name))):
        if found.source in taken:
            continue
        trace = _trace(found.function, found.arity)
        if trace is None or any(torch.equal(trace, other) for other in seen):
            continue
        entry = described(found)
        if entry is not None:
            seen.append(trace)
            entries.append(entry)
    return sorted(entries, key=lambda entry: (entry.family, entry.name))


def _function(source: str) -> Callable[..., Any] | None:
    found: Any = torch
    for part in source.split(".")[1:]:
        found = getattr(found, part, None)
    return found if callable(found) and not inspect.isclass(found) else None


def _registry() -> Iterator[Found]:
    """Every public operator of one or two tensors."""
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space != "aten" or schema.overload_name not in ("", "Tensor") or name[0] == "_" or name[-1] == "_":
            continue
        if any(part in name for part in _UNFIT):
            continue
        needed = [arg for arg in schema.arguments if not arg.has_default_value()]
        tensors = [arg for arg in needed if str(arg.type) == "Tensor"]
        if len(needed) != len(tensors) or len(tensors) not in (1, 2) or len(schema.returns) != 1:
            continue
        short = name.removeprefix("special_")
        for prefix, place in (("torch", torch), ("torch.special", torch.special)):
            wanted = short if prefix == "torch.special" else name
            if callable(getattr(place, wanted, None)):
                source = f"{prefix}.{wanted}"
                yield Found(wanted, getattr(place, wanted), source, str(schema), len(tensors))
                break


def _probe(low: float, high: float, arity: int) -> list[Any]:
    generator = torch.Generator().manual_seed(1)
    return [torch.rand((5, 7, 4), generator=generator) * (high - low) + low for _ in range(arity)]


def _trace(function: Callable[..., Any] | None, arity: int) -> Any | None:
    """Results on odd values, which tell two operators apart; None where it refuses them."""
    if function is None:
        return None
    ends = [float("nan"), float("inf"), -float("inf"), 900.0] if arity == 1 else [float("nan"), 7.0]
    odd = torch.tensor([*ends, 0.0, -0.0, 1.0, -1.5, 0.3, 2.7])
    operands = [odd, odd.roll(3)][:arity]
    try:
        result = function(*operands)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    same = isinstance(result, torch.Tensor) and result.shape == odd.shape and result.dtype == odd.dtype
    return torch.nan_to_num(result, nan=12345.0) if same else None


def described(found: Found) -> Operator | None:
    """The entry of an operator; None where it is not elementwise, smooth nowhere and not a step either."""
    for needs, (low, high) in _DOMAINS.items():
        operands = _probe(low, high, found.arity)
        result = _finite(found, operands)
        if result is None or not _is_elementwise(found, operands, result):
            continue
        if _moves(found, operands) > _STEP:
            continue
        return _entry(found, needs)
    operands = _probe(*_DOMAINS[""], found.arity)
    result = _finite(found, operands)
    if found.arity == 1 and result is not None and _is_elementwise(found, operands, result):
        return _entry(found, "exact") if float(result.abs().max()) <= _DOMAINS[""][1] else None
    return None


def _finite(found: Found, operands: list[Any]) -> Any | None:
    try:
        result = found.function(*operands)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    fits = isinstance(result, torch.Tensor) and result.dtype == torch.float32
    if not fits or result.shape != operands[0].shape or not bool(torch.isfinite(result).all()):
        return None
    return None if torch.equal(result, operands[0]) or bool((result == result.flatten()[0]).all()) else result


def _is_elementwise(found: Found, operands: list[Any], result: Any) -> bool:
    """Whether elements in another order give the results in that order."""
    order = torch.randperm(result.numel(), generator=torch.Generator().manual_seed(2))
    shuffled = [operand.flatten()[order].reshape(operand.shape) for operand in operands]
    return bool(torch.allclose(found.function(*shuffled).flatten(), result.flatten()[order], rtol=1e-5))


def _moves(found: Found, operands: list[Any]) -> float:
    """The largest change of a result, in units of its size, when operands change in their fifth digit."""
    span = float(operands[0].max() - operands[0].min())
    worst = 0.0
    for operand in operands:
        low, high = float(operand.min()), float(operand.max())
        grid = torch.linspace(low, high, 200_001, dtype=torch.float64).float()
        others = [
            grid if other is operand else torch.full_like(grid, float(other.mean())) for other in operands
        ]
        values = found.function(*others)
        size = values.abs().clamp(min=1.0)[1:]
        worst = max(worst, float(((values[1:] - values[:-1]).abs() / size).max()) if span else 0.0)
    return worst


def _entry(found: Found, needs: str) -> Operator:
    low, high = _DOMAINS.get(needs, _DOMAINS[""])
    gives: list[str] = []
    grown = 0.0
    if found.arity == 1:
        values = found.function(torch.linspace(low, high, 10_001))
        if not needs:
            wide = found.function(torch.linspace(-_WIDE, _WIDE, 10_001))
            grown = float(torch.nan_to_num(wide, nan=_LARGE * 2).abs().max())
        least, most = float(values.min()), float(values.max())
        if least >= 0.0 and most <= 1.0:
            gives.append("unit")
        elif least >= -1.0 and most <= 1.0:
            gives.append("open")
        if max(abs(least), abs(most)) <= high:
            gives.append("bounded" if needs or grown <= high else "keeps")
        if least > 1e-3:
            gives.append("positive")
    special = "torch.special." in found.source
    rules = {"x": "*"} if found.arity == 1 else {"x": "*", "y": f"* : {needs}" if needs else "*"}
    return Operator(
        name=found.name,
        family="special" if special else "elementwise",
        source=found.source,
        signature=found.schema,
        call=f"{found.source}({', '.join(rules)})",
        operands=rules,
        output="*",
        needs=needs or ("bounded" if grown > _LARGE else ""),
        gives=gives,
    )


if __name__ == "__main__":
    raise SystemExit(main())
