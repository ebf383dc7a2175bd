"""The workloads that are made for definitions of FlashInfer-Bench."""

import json
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.dialects import flashinfer
from tests import trace_workloads

PAGED = """
import torch

def run(q, k_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    assert kv_indptr[-1] == kv_indices.numel() == kv_indices.unique().numel()
    assert int(kv_indices.max()) < k_cache.shape[0]
    pages = [kv_indices[a:b].long() for a, b in zip(kv_indptr, kv_indptr[1:])]
    keys = [k_cache[each].flatten(0, 1)[: (len(each) - 1) * 4 + last]
            for each, last in zip(pages, kv_last_page_len)]
    return torch.stack([row @ each.T.mean(1) * sm_scale for row, each in zip(q, keys)])
"""
CHOICES = """
import torch

def run(x, topk_ids, top_p, positions):
    experts, weights = topk_ids >> 16, (topk_ids & 0xFFFF).to(torch.int16).view(torch.bfloat16)
    assert ((0 <= experts) & (experts < 8)).all()
    assert ((0 < top_p) & (top_p < 1)).all() and ((0 <= positions) & (positions < 64)).all()
    return x * weights.float().sum(1, keepdim=True)
"""


def definition(name: str, reference: str, axes: dict[str, int], **tensors: Any) -> dict[str, Any]:
    found = {axis for shape, _ in tensors.values() for axis in shape or ()}
    return {
        "name": name,
        "op_type": "test",
        "axes": {axis: {"type": "var"} for axis in found - axes.keys()}
        | {axis: {"type": "const", "value": value} for axis, value in axes.items()},
        "inputs": {key: {"shape": shape, "dtype": dtype} for key, (shape, dtype) in tensors.items()},
        "outputs": {"y": {"shape": [next(iter(tensors.values()))[0][0]], "dtype": "float32"}},
        "reference": reference,
    }


PAGED_DECODE = definition(
    "paged_decode",
    PAGED,
    {"page_size": 4, "head_dim": 8},
    q=(["batch_size", "head_dim"], "float32"),
    k_cache=(["num_pages", "page_size", "head_dim"], "float32"),
    kv_indptr=(["len_indptr"], "int32"),
    kv_indices=(["num_kv_indices"], "int32"),
    kv_last_page_len=(["batch_size"], "int32"),
    sm_scale=(None, "float32"),
)
ROUTED = definition(
    "routed",
    CHOICES,
    {"top_k": 2, "num_experts": 8},
    x=(["seq_len", "num_experts"], "float32"),
    topk_ids=(["seq_len", "top_k"], "int32"),
    top_p=(["seq_len"], "float32"),
    positions=(["seq_len"], "int64"),
)


@pytest.mark.parametrize("given", [PAGED_DECODE, ROUTED], ids=["paged", "routed"])
def test_reference_runs_on_its_workloads(tmp_path: Path, given: dict[str, Any]) -> None:
    path = tmp_path / "bare" / "definitions" / "test" / f"{given['name']}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(given))
    assert trace_workloads.write(tmp_path / "bare", tmp_path / "made") == 1
    (path,) = flashinfer.definitions(tmp_path / "made").values()
    problem: dict[str, Any] = {}
    exec(flashinfer.problem_source(path.read_text(), path, tmp_path / "made"), problem)
    workloads = problem["get_workloads"]()
    assert len(workloads) == len(trace_workloads.LENGTHS)
    for workload in workloads:
        assert problem["Model"]()(*workload["get_inputs"]())[0].isfinite().all()
