"""Small workloads for definitions of FlashInfer-Bench, most of which come without workloads or their data.

    python -m tests.trace_workloads TRACE_SET FOLDER

copies the definitions of ``TRACE_SET`` to the trace set ``FOLDER`` and writes two workloads for each. Page
tables, offsets of sequences and other inputs that only make sense together are stored in safetensors files.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from adaexplore.core.dialects.flashinfer import read_definition
from adaexplore.core.dialects.schema import Definition
from adaexplore.core.files.atomic import write_text

LENGTHS = ((5, 70), (33, 1, 130))
"""Lengths of the sequences in each workload; their last tokens are the queries."""
_SPARE_PAGES = 3
_SIZES = {
    "M": 7, "batch_size": 3, "seq_len": 3, "num_tokens": 4, "pool_size": 5, "state_cache_size": 5,
    "num_qo_heads": 4, "num_kv_heads": 2, "max_seq_len": 64, "max_num_pages": 32,
}  # fmt: skip
_NUMBERS = {"local_expert_offset": 0, "routed_scaling_factor": 2.5}
_SCALE = 1 / math.sqrt(128)

Stored = dict[str, np.ndarray]


def _sequences(lengths: tuple[int, ...], page_size: int, *, decode: bool) -> tuple[dict[str, int], Stored]:
    """Return the axes and inputs that say where each sequence begins and ends."""
    keys = np.array(lengths)
    queries = np.ones_like(keys) if decode else (keys + 1) // 2
    pages = -(-keys // page_size)
    axes = {
        "total_q": int(queries.sum()),
        "total_kv": int(keys.sum()),
        "total_seq_len": int(keys.sum()),
        "num_seqs": len(keys),
        "len_indptr": len(keys) + 1,
        "len_cu_seqlens": len(keys) + 1,
        "num_kv_indices": int(pages.sum()),
        "num_pages": int(pages.sum()) + _SPARE_PAGES,
    }
    offsets = {
        name: np.concatenate([[0], np.cumsum(counts)])
        for name, counts in {"qo_indptr": queries, "kv_indptr": pages, "cu_seqlens": keys}.items()
    }
    return axes, {**offsets, "kv_last_page_len": (keys - 1) % page_size + 1}


def workload(
    definition: Definition, lengths: tuple[int, ...], rng: np.random.Generator, blob: str
) -> tuple[dict[str, int], dict[str, Any], Stored]:
    """Return the sizes of the variable axes, the inputs' origins, and the tensors of the file ``blob``."""
    fixed = {name: axis.value for name, axis in definition.axes.items() if axis.value is not None}
    found, together = _sequences(lengths, fixed.get("page_size", 1), decode="decode" in definition.name)
    axes = _SIZES | found | fixed
    if "kv_indptr" in definition.inputs:
        axes["batch_size"] = len(lengths)
    if definition.op_type == "dsa_paged":
        axes["num_pages"] = 2 * fixed["topk"] // fixed["page_size"]
    inputs: dict[str, Any] = {}
    stored: Stored = {}
    for name, tensor in definition.inputs.items():
        if tensor.shape is None:
            inputs[name] = {"type": "scalar", "value": _NUMBERS.get(name, _SCALE)}
            continue
        shape = tuple(int(each) if each.isdecimal() else axes[each] for each in tensor.shape)
        content = together[name] if name in together else _drawn(name, shape, axes, rng)
        if content is None:
            inputs[name] = {"type": "random"}
        else:
            inputs[name] = {"type": "safetensors", "path": blob, "tensor_key": name}
            # some definitions want one more last length
            stored[name] = np.resize(content, shape).astype(tensor.dtype)
    return {name: axes[name] for name in definition.axes if name not in fixed}, inputs, stored


def _drawn(
    name: str, shape: tuple[int, ...], axes: Mapping[str, int], rng: np.random.Generator
) -> np.ndarray | None:
    """Return an input that a normal distribution does not suit; None for the others."""
    match name:
        case "kv_indices" | "block_table":
            return _different(rng, axes["num_pages"], shape)
        case "sparse_indices":
            rows = _different(rng, axes["num_pages"] * axes["page_size"], shape)
            rows[-1, shape[1] // 2 :] = -1  # no more tokens
            return rows
        case "seq_lens":
            return rng.integers(1, axes["max_num_pages"] * axes["page_size"] + 1, shape)
        case "k_index_cache_fp8":  # in each page all keys, then the scale of each as four bytes
            pages, size, _, bytes_of_token = shape
            levels = np.array([0x30, 0x38, 0xB0, 0xB8], np.uint8)
            keys = rng.choice(levels, (pages, size * (bytes_of_token - 4)))
            scales = np.full((pages, size), 0.5, np.float32).view(np.uint8)
            return np.concatenate([keys, scales], axis=1).view(np.int8).reshape(shape)
        case "positions":
            return rng.integers(0, axes["max_seq_len"], shape)
        case "state_batch_indices":
            return _different(rng, axes["state_cache_size"], shape)
        case "initial_state_indices":
            return _different(rng, axes["pool_size"], shape)
        case "topk_ids":  # the expert, and its weight as bfloat16 in the lower half
            weights = np.full(shape, 1 / shape[1], np.float32).view(np.uint32) >> 16
            return _different(rng, axes["num_experts"], shape) << 16 | weights
        case "top_k":
            return rng.integers(1, 50, shape)
        case "top_p":
            return rng.uniform(0.1, 0.9, shape)
    return None


def _different(rng: np.random.Generator, below: int, shape: tuple[int, ...]) -> np.ndarray:
    """Draw whole numbers; no row has one twice."""
    *rows, count = shape
    return np.stack([rng.permutation(below)[:count] for _ in range(math.prod(rows))]).reshape(shape)


def write(trace_set: Path, folder: Path) -> int:
    """Write the definitions of ``trace_set`` with workloads to ``folder``; return how many there are."""
    found = sorted(trace_set.glob("definitions/**/*.json"))
    for path in found:
        text = path.read_text(encoding="utf-8")
        definition = read_definition(text, path)
        place = path.relative_to(trace_set / "definitions")
        rng = np.random.default_rng(0)
        lines = []
        for number, lengths in enumerate(LENGTHS):
            blob = f"blob/workloads/{place.with_suffix('')}_{number}.safetensors"
            axes, inputs, stored = workload(definition, lengths, rng, blob)
            if stored:
                (folder / blob).parent.mkdir(parents=True, exist_ok=True)
                save_file(stored, folder / blob)
            one = {"uuid": f"{definition.name}-{number}", "axes": axes, "inputs": inputs}
            lines.append(json.dumps({"definition": definition.name, "workload": one}))
        write_text(folder / "definitions" / place, text)
        write_text(folder / "workloads" / place.with_suffix(".jsonl"), "\n".join(lines) + "\n")
    return len(found)


if __name__ == "__main__":
    sys.stdout.write(f"{write(Path(sys.argv[1]), Path(sys.argv[2]))} definitions\n")
