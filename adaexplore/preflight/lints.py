"""Lint a candidate: each finding is a mistake that keeps it from working."""

import ast
from collections.abc import Iterator

from adaexplore.core.environment import TritonFacts
from adaexplore.preflight.candidate import Candidate
from adaexplore.preflight.findings import Finding, finding
from adaexplore.preflight.host_lints import HostLints, model_findings
from adaexplore.preflight.kernel_lints import KernelLints
from adaexplore.preflight.launch_lints import launch_findings, launch_of
from adaexplore.preflight.reach import Walk
from adaexplore.preflight.scopes import Scopes, Where
from adaexplore.preflight.triton_names import missing_names


def lint(source: str, triton: TritonFacts | None, reference: str | None = None) -> tuple[Finding, ...]:
    """Return the findings on a candidate, by line; no code of it is run.

    Args:
        source: the candidate's module.
        triton: facts about the judge's Triton, from ``GET /v2/environment``; without them, lints that
            depend on the version are off.
        reference: the problem's module, for the constructor's parameters.
    """
    try:
        candidate = Candidate(source)
    except SyntaxError as error:
        return (finding("syntax", error.lineno or 1, what=error.msg),)
    except (ValueError, RecursionError, MemoryError) as error:
        return (finding("syntax", 1, what=str(error) or "nested too deeply"),)
    problem = _problem(reference)
    host, kernels = HostLints(candidate), KernelLints(candidate, triton)

    def check(node: ast.AST, where: Where) -> Iterator[Finding]:
        if triton is not None:
            yield from missing_names(candidate, node, triton)
        if where.in_kernel:
            yield from kernels.check(node, where)
            return
        yield from host.check(node, where)
        launch = launch_of(candidate, node, where)
        if launch is not None:
            yield from launch_findings(candidate, launch, triton)

    try:
        scopes = Scopes(candidate, problem)
        found = [*model_findings(candidate, problem), *Walk(candidate, scopes, check).findings()]
    except (RecursionError, ValueError):  # nested too deeply, or an f-string that cannot be unparsed
        return ()
    return tuple(sorted(set(found), key=lambda each: (each.line, each.rule, each.message)))


def _problem(reference: str | None) -> Candidate | None:
    try:
        return None if reference is None else Candidate(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
