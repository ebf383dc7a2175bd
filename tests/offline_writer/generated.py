"""Random modules: chains of element-wise operations, reductions and products."""

import random

from tests.offline_writer.modules import module

_UNARY = (
    "torch.tanh({0})", "F.gelu({0})", "{0}.sigmoid()", "torch.relu({0})", "({0} * 0.5 + 0.1)", "F.silu({0})",
    "torch.sqrt({0}.abs() + 0.1)", "torch.clamp({0}, -1.0, 1.0)", "F.softplus({0})", "torch.exp(-{0} * {0})",
    "{0}.square()", "F.elu({0}, alpha=self.alpha)",
)  # fmt: skip
_BINARY = (
    "({0} + {1})", "({0} - {1})", "({0} * {1})", "torch.maximum({0}, {1})", "torch.where({0} > 0, {0}, {1})",
    "{0}.masked_fill({1} > 0.5, 0.25)", "({0} / ({1}.abs() + 1))",
)  # fmt: skip
_ROWS = (
    "F.softmax({0}, dim={d})", "({0} - {0}.mean(dim={d}, keepdim=True))", "F.log_softmax({0}, dim={d})",
    "({0} * torch.rsqrt({0}.pow(2).mean({d}, keepdim=True) + 1e-5))", "{0}.sum({d}, keepdim=True)",
    "torch.logsumexp({0}, dim={d}, keepdim=True)", "{0}.amax(dim={d}, keepdim=True)", "self.norm({0})",
)  # fmt: skip


def random_module(seed: int) -> str:
    """Return a module with two inputs, a parameter and up to four outputs."""
    rng = random.Random(seed)
    known = ["x", "y", "self.weight"]
    statements = []
    for number in range(rng.randint(3, 9)):
        kind = rng.random()
        first, second = rng.choice(known[-3:]), rng.choice(known)
        if kind < 0.4:
            text = rng.choice(_UNARY).format(first)
        elif kind < 0.75:
            text = rng.choice(_BINARY).format(first, second)
        else:
            text = rng.choice(_ROWS).format(f"({first} + 0 * x)", d=rng.choice((0, 1, 2, -1)))
        statements.append(f"v{number} = {text}")
        known.append(f"v{number}")
    results = rng.sample(known[3:], rng.randint(1, min(3, len(known) - 3)))
    body = "; ".join([*statements, f"return {', '.join(dict.fromkeys([known[-1], *results]))}"])
    return module(
        f"x, y: {body}",
        "torch.randn(4, 6, 10), torch.randn(6, 10)",
        "self.weight = nn.Parameter(torch.randn(6, 1)); self.alpha = 0.7; self.norm = nn.LayerNorm(10)",
    )
