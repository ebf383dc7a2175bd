"""Runs in a process of its own under Triton's interpreter: references beside their translations.

Reads ``[{"name", "reference", "candidate", "dtype", "transposed"}]`` as JSON on stdin, writes
``{case: problem or null}`` as JSON on stdout.
"""

import importlib.util
import json
import sys
import tempfile
import warnings
from pathlib import Path

import torch

warnings.simplefilter("ignore")
TOLERANCES = {"float32": 2e-4, "float16": 2e-2, "bfloat16": 1e-1}


def load(source, folder, name):
    path = Path(folder) / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tensors(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for inner in value for tensor in tensors(inner)]
    return [value]


def problem(case, folder, number):
    dtype = getattr(torch, case["dtype"])
    torch.manual_seed(0)
    reference = load(case["reference"], folder, f"reference_{number}")
    candidate = load(case["candidate"], folder, f"candidate_{number}")
    old = reference.Model(*reference.get_init_inputs()).to(dtype)
    new = candidate.ModelNew(*reference.get_init_inputs()).to(dtype)
    new.load_state_dict(old.state_dict())
    inputs = []
    for value in reference.get_inputs():
        if torch.is_tensor(value) and value.is_floating_point():
            value = value.to(dtype)
        if torch.is_tensor(value) and case["transposed"] and value.dim() > 1:
            value = value.transpose(0, -1).contiguous().transpose(0, -1)
        inputs.append(value)
    copies = [value.clone() if torch.is_tensor(value) else value for value in inputs]
    with torch.no_grad():
        expected, got = tensors(old(*inputs)), tensors(new(*copies))
    if len(expected) != len(got):
        return f"{len(got)} outputs, want {len(expected)}"
    for want, have in zip(expected, got, strict=True):
        if (want.shape, want.dtype) != (have.shape, have.dtype):
            return f"{have.dtype} {tuple(have.shape)}, want {want.dtype} {tuple(want.shape)}"
        tolerance = TOLERANCES[case["dtype"]]
        if not torch.allclose(have.float(), want.float(), rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"values differ by {(have.float() - want.float()).abs().max().item()}"
    return None


def main():
    torch.set_num_threads(1)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(json.load(sys.stdin)):
            try:
                found[case["name"]] = problem(case, folder, number)
            except Exception as error:  # noqa: BLE001 - reported to the test
                found[case["name"]] = f"{type(error).__name__}: {str(error)[-600:]}"
    json.dump(found, sys.stdout)


main()
