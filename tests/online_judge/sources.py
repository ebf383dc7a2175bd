"""Reference modules and candidates, one bad candidate per way to fail."""

REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(8, 16)]

def get_init_inputs():
    return [16]
"""

PASSING = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, tl.maximum(x, 0.0), mask=mask)

class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        h = self.linear(x)
        y = torch.empty_like(h)
        relu_kernel[(triton.cdiv(h.numel(), 64),)](h, y, h.numel(), BLOCK=64)
        return y
"""


def with_forward(body: str, top: str = "", reference_layers: bool = True) -> str:
    """Return a plain torch candidate whose ``forward(self, x)`` has this body."""
    layers = "self.linear = nn.Linear(features, features)" if reference_layers else "pass"
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return (
        f"import os, sys, time\nimport torch\nimport torch.nn as nn\n{top}\n"
        "class ModelNew(nn.Module):\n    def __init__(self, features):\n        super().__init__()\n"
        f"        {layers}\n    def forward(self, x):\n{lines}\n"
    )


NOTED = "open('/proc/self/comm', 'w').write('noted')\n"  # its process is found by this name
HONEST = "return torch.relu(self.linear(x))"

BAD = {
    "syntax": "class ModelNew(:\n    pass\n",
    "syntax-indent": "class ModelNew:\ndef block():\npass\n",
    "syntax-null": "x = '\x00'\n",
    "syntax-deep": "x = " + "-" * 100_000 + "1\n",
    "load": "import module_that_is_not_there\n",
    "load-empty": "",
    "load-no-class": "x = 1\n",
    "load-exit": "import sys\nsys.exit(0)\n",
    "construct": "class ModelNew:\n    def __init__(self):\n        pass\n",
    "construct-exit": "class ModelNew:\n    def __init__(self, n):\n        raise SystemExit(0)\n",
    "compile": PASSING.replace("tl.maximum", "tl.maximun"),
    "compile-wrapped": PASSING.replace("tl.maximum", "tl.maximun").replace(
        "        relu_kernel[(triton.cdiv(h.numel(), 64),)](h, y, h.numel(), BLOCK=64)\n",
        "        try:\n            relu_kernel[(2,)](h, y, h.numel(), BLOCK=64)\n"
        "        except Exception as error:\n            raise RuntimeError('kernel failed') from error\n",
    ),
    "compile-torch": PASSING.replace("tl.maximum(x, 0.0)", "torch.relu(x)"),
    "launch": PASSING.replace("h, y, h.numel(), BLOCK=64", "h, y, BLOCK=64"),
    "launch-assert": with_forward("assert x.dtype == torch.float64, 'block wanted'"),
    "launch-exit": with_forward("sys.exit(0)"),
    "illegal_access": PASSING.replace("y_ptr + offsets, tl", "y_ptr + offsets + 4096, tl"),
    "crash-exit": with_forward("os._exit(0)"),
    "crash-signal": with_forward("os.kill(os.getpid(), 11)"),
    "out_of_memory": with_forward("return torch.empty(2**40, dtype=torch.uint8)"),
    "wrong_shape": with_forward("return torch.relu(self.linear(x)).T"),
    "wrong_shape-structure": with_forward("y = torch.relu(self.linear(x))\nreturn y, y"),
    "wrong_shape-none": with_forward("return None"),
    "wrong_dtype": with_forward("return torch.relu(self.linear(x)).half()"),
    "wrong_value": with_forward("return self.linear(x)"),
    "nonfinite": with_forward("return torch.relu(self.linear(x)) / 0.0"),
    "nonfinite-nan": with_forward("return torch.relu(self.linear(x)) * float('nan')"),
}
