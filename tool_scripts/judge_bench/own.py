"""Candidates of the offline writer for this benchmark's own problems and for the quickstart's."""

import random
from pathlib import Path

from adaexplore.core.errors import UsageError
from adaexplore.offline_writer.module import translate
from adaexplore.offline_writer.writer import possible_designs
from tests.backward_tasks import ModuleText
from tool_scripts.judge_bench import candidates
from tool_scripts.judge_bench.candidates import Candidate

QUICKSTART = Path(__file__).parents[2] / "datasets" / "quickstart"

LARGE = "large"
SMALL = "small"


_TWO = "torch.randn(N, D), torch.randn(N, D)"
_SQUARE = (4096, 4096)
PROBLEMS = {
    "large-bias-gelu": ModuleText(
        "self.bias = nn.Parameter(0.1 * torch.randn(D))", "return F.gelu(x + self.bias)", large=(8192, 8192)
    ),
    "large-layernorm": ModuleText(
        "self.norm = nn.LayerNorm(D)",
        "return self.norm(x + residual)",
        _TWO,
        large=(12288, 4096),
        arguments="x, residual",
    ),
    "large-log-softmax": ModuleText("pass", "return torch.log_softmax(x * 2.0, dim=-1)", large=(8192, 8192)),
    "small-gated-add": ModuleText(
        "pass", "return F.silu(a) * b + c", f"{_TWO}, torch.randn(N, D)", large=_SQUARE, arguments="a, b, c"
    ),
    "small-rmsnorm": ModuleText(
        "self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(D))",
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight",
        large=_SQUARE,
    ),
    "small-row-dot": ModuleText(
        "pass", "return torch.sum(a * b, dim=-1)", _TWO, large=_SQUARE, arguments="a, b"
    ),
}
"""The problems of ``repeat``: kernels for ``large-*`` take over 100 us, for ``small-*`` 20 to 100 us."""


def kernels() -> list[Candidate]:
    return [
        Candidate(f"{name}/fused", name, source, translate(source, possible_designs(source)[0]))
        for name, source in ((name, problem.source()) for name, problem in PROBLEMS.items())
    ]


def offline(seed: int, per_problem: int) -> list[Candidate]:
    """Return the offline writer's kernels for each quickstart problem, without deliberate mistakes.

    ``seed`` chooses ``per_problem`` designs; the usual one is always among them.

    Raises:
        UsageError: there are no quickstart problems.
    """
    files = sorted(QUICKSTART.glob("level*/*.py"))
    if not files:
        raise UsageError(f"{QUICKSTART} has no level*/*.py; run this from a checkout of the project")
    made: list[Candidate] = []
    for file in files:
        reference = file.read_text(encoding="utf-8")
        name = f"quickstart-{file.parent.name}-{file.stem}"
        designs = possible_designs(reference)
        rng = random.Random(f"{seed}:{name}")
        chosen = designs[:1] + rng.sample(designs[1:], min(per_problem - 1, len(designs) - 1))
        for design in chosen:
            id = f"{name}/design-{designs.index(design)}"
            made.append(Candidate(id, name, reference, translate(reference, design)))
    return candidates.different(made)
