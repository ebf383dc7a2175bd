"""What the child programs share: loading a reference and a candidate the plain way.

This imports torch; only children import it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import torch

from tool_scripts.judge_bench.children import RESULT_FILE

SEED = 42
TOLERANCE = 5e-2
TRIALS = 5


def asked_device() -> str:
    """The ``--device`` of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    return str(parser.parse_args().device)


def write_result(result: Mapping[str, object]) -> None:
    """Leave what was found for the parent."""
    Path(RESULT_FILE).write_text(json.dumps(result), encoding="utf-8")


def seed_everything(seed: int) -> None:
    """Seed torch, NumPy and ``random``."""
    torch.manual_seed(seed)
    numpy.random.seed(seed % 2**32)
    random.seed(seed)


def switch_tf32_off() -> None:
    """Eager float32 products in IEEE precision; Triton keeps its own default."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def load(name: str) -> ModuleType:
    """Import ``<name>.py`` of the working folder; raises whatever it raises."""
    spec = importlib.util.spec_from_file_location(name, f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def construct(module: ModuleType, class_name: str, init_inputs: list[Any], device: str) -> Any:
    """The model, seeded, on its device."""
    seed_everything(SEED)
    return getattr(module, class_name)(*init_inputs).to(device)


def inputs(reference: ModuleType, seed: int, device: str) -> list[Any]:
    """Seeded inputs on the device."""
    seed_everything(seed)
    return [value.to(device) if torch.is_tensor(value) else value for value in reference.get_inputs()]


def difference(got: Any, want: Any) -> str:
    """Empty where ``got`` is close to ``want`` element by element, else how it is not."""
    if isinstance(want, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(want):
            return "another number of outputs"
        parts = [difference(a, b) for a, b in zip(got, want, strict=True)]
        return next(filter(None, parts), "")
    if got.shape != want.shape:
        return f"shape {tuple(got.shape)} instead of {tuple(want.shape)}"
    if torch.allclose(got.to(want.dtype), want, rtol=TOLERANCE, atol=TOLERANCE):
        return ""
    return f"differs by up to {(got.double() - want.double()).abs().max().item():.6f}"
