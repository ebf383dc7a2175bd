"""Load a candidate's source in a process that runs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from adaexplore.core.cpu_limit import cpu_limit
from online_judge.candidate import classification
from online_judge.checks.facts.findings import Failure
from online_judge.common import modules

MODULE = "candidate"
_IMPORT_CPU_S = 10.0


def load_class(source: bytes, file: str) -> Callable[..., object] | Failure:
    """Write a source to ``file``, import it and return its ``ModelNew``, or how its syntax is wrong.

    Raises what the import raises; AttributeError if there is no ``ModelNew``.
    """
    Path(file).write_bytes(source)
    try:
        compile(source, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        return classification.syntax_failure(error, source.decode("utf-8", "replace"))
    why = f"importing the module took {_IMPORT_CPU_S:g} s of CPU time; is there an endless loop in it?"
    with cpu_limit(_IMPORT_CPU_S, why):
        module = modules.load_file(file, MODULE)
    found: Callable[..., object] | None = getattr(module, "ModelNew", None)
    if found is None:
        raise AttributeError(f"the source {'defines no class ModelNew' if source.strip() else 'is empty'}")
    return found
