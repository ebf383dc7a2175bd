"""Lints on a candidate: each finding is a mistake with which it cannot work."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from adaexplore.preflight.arguments import variants
from adaexplore.preflight.candidate import Candidate
from adaexplore.preflight.findings import Finding, finding
from adaexplore.preflight.host_lints import HostLints, model_findings
from adaexplore.preflight.kernel_lints import KernelLints
from adaexplore.preflight.launch_lints import launch_findings, launch_of
from adaexplore.preflight.reach import Walk, Where
from adaexplore.preflight.scopes import Scopes
from adaexplore.preflight.triton_api import TritonApi


def lint(source: str, api: TritonApi | None, reference: str | None = None) -> tuple[Finding, ...]:
    """What is wrong with a candidate, by line; nothing of it is run.

    Args:
        source: the candidate's module.
        api: the judge's Triton (:func:`~adaexplore.preflight.triton_api.triton_api`); without one, nothing
            is said that depends on its version.
        reference: the problem's module, for the constructor's parameters.
    """
    try:
        candidate = Candidate(source)
    except SyntaxError as error:
        return (finding("syntax", error.lineno or 1, what=error.msg),)
    except (ValueError, RecursionError, MemoryError) as error:
        return (finding("syntax", 1, what=str(error) or "nested too deeply"),)
    problem = _problem(reference)
    host = HostLints(candidate, api)
    scopes = Scopes(candidate, problem)

    def check(node: ast.AST, where: Where) -> Iterator[Finding]:
        yield from host.check(node, where)
        launch = launch_of(candidate, node, where)
        if launch is not None:
            yield from launch_findings(candidate, launch, api)
            if api is not None:
                for values in variants(candidate, scopes, launch):
                    kernel = KernelLints(candidate, api)
                    kernel.run(launch.kernel, values)
                    yield from kernel.found

    try:
        found = [*model_findings(candidate, problem), *Walk(candidate, scopes, check).findings()]
    except (RecursionError, ValueError):  # nested too deeply, or an f-string that cannot be written out again
        return ()
    return tuple(sorted(set(found), key=lambda each: (each.line, each.rule, each.message)))


def _problem(reference: str | None) -> Candidate | None:
    try:
        return None if reference is None else Candidate(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
