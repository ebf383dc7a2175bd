"""Problems in each form that ``get_inputs``, ``get_init_inputs``, ``Model`` and outputs may have."""

_HEAD = (
    "import torch\nimport torch.nn as nn\nfrom dataclasses import dataclass\nfrom typing import NamedTuple\n"
)
_LAYER = """
class {name}(nn.Module):
    def __init__(self, width, slope=0.1):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.slope = slope

    def forward(self, {parameters}):
        return {result}
"""
KERNEL = """
import triton
import triton.language as tl

@triton.jit
def scaled_kernel(x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * scale, mask=mask)

def scaled(x, scale):
    x = x.contiguous()
    y = torch.empty_like(x)
    scaled_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), scale, BLOCK=1024)
    return y
"""
ACTIVATED = "nn.functional.leaky_relu(self.fc(x), self.slope)"


def layer(
    inputs: str,
    init_inputs: str = "[16]",
    parameters: str = "x, scale=1.0",
    result: str = f"{ACTIVATED} * scale",
    above: str = "",
) -> str:
    """Return a problem with a linear layer."""
    model = _LAYER.format(name="Model", parameters=parameters, result=result)
    return (
        f"{_HEAD}{above}{model}\ndef get_inputs():\n    return {inputs}\n"
        f"\ndef get_init_inputs():\n    return {init_inputs}\n"
    )


def layer_candidate(
    parameters: str = "x, scale=1.0", result: str = f"scaled({ACTIVATED}, scale)", above: str = ""
) -> str:
    """Return a candidate for :func:`layer` with a kernel."""
    return _HEAD + KERNEL + above + _LAYER.format(name="ModelNew", parameters=parameters, result=result)


def scaling(
    inputs: str, top: str = "def Model(x, scale=1.0):\n    return x * scale\n", more: str = ""
) -> str:
    """Return a problem that is a function."""
    return f"{_HEAD}\n{top}\ndef get_inputs():\n    return {inputs}\n{more}"


FUNCTION = f"{_HEAD}{KERNEL}\ndef ModelNew(x, scale=1.0):\n    return scaled(x, scale)\n"
FUNCTION_AS_CLASS = f"""{_HEAD}{KERNEL}
class ModelNew(nn.Module):
    def forward(self, x, scale=1.0):
        return scaled(x, scale)
"""
PAIR = "@dataclass\nclass Pair:\n    right: object\n    left: object\n"
NAMED = "class Pair(NamedTuple):\n    right: object\n    left: object\n"
PAIRED = "Pair({0}, (x, None))"

KEYWORDS = '[[torch.randn(8, 16)], {"scale": 3.0}]'
FORMS: dict[str, tuple[str, str]] = {
    "init by keyword": (
        layer("[torch.randn(8, 16)]", '[[], {"width": 16, "slope": 0.5}]'),
        layer_candidate(),
    ),
    "init list and dict": (layer("[torch.randn(8, 16)]", '[[16], {"slope": 0.5}]'), layer_candidate()),
    "init dict": (layer("[torch.randn(8, 16)]", '{"width": 16, "slope": 0.5}'), layer_candidate()),
    "init number": (layer("[torch.randn(8, 16)]", "16"), layer_candidate()),
    "inputs by keyword": (layer(KEYWORDS), layer_candidate()),
    "inputs dict": (layer('{"scale": 3.0, "x": torch.randn(8, 16)}'), layer_candidate()),
    "inputs tensor": (layer("torch.randn(8, 16)"), layer_candidate()),
    "keyword tensor": (
        layer('[[], {"scale": torch.rand(16), "x": torch.randn(8, 16)}]', parameters="*, x, scale"),
        layer_candidate("*, x, scale", f"scaled({ACTIVATED}, 1.0) * scale"),
    ),
    "workloads": (
        layer("None")
        + "\ndef get_workloads():\n"
        + f"    return [{{'name': 'a', 'get_inputs': lambda: {KEYWORDS}}},\n"
        + "            {'name': 'b', 'get_inputs': lambda: torch.randn(4, 16)}]\n",
        layer_candidate(),
    ),
    "function": (scaling("[torch.randn(8, 16), 3.0]"), FUNCTION),
    "function by keyword": (scaling(KEYWORDS), FUNCTION),
    "class for a function": (scaling(KEYWORDS), FUNCTION_AS_CLASS),
    "function of another name": (
        scaling("torch.randn(8, 16)", "def double(x):\n    return x * 2\n\nModel = double\n"),
        f"{_HEAD}{KERNEL}\ndef ModelNew(x):\n    return scaled(x, 2.0)\n",
    ),
    "dataclass": (
        layer("torch.randn(8, 16)", result=PAIRED.format(ACTIVATED), above=PAIR),
        layer_candidate(result=PAIRED.format(f"scaled({ACTIVATED}, 1.0)"), above=PAIR),
    ),
    "named tuple": (
        layer("torch.randn(8, 16)", result=PAIRED.format(ACTIVATED), above=NAMED),
        layer_candidate(result=PAIRED.format(f"scaled({ACTIVATED}, 1.0)"), above=NAMED),
    ),
}
"""By form, a problem and a right candidate with a kernel."""
