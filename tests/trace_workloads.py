"""Small workloads for definitions of FlashInfer-Bench, most of which come without workloads or their data.

    python -m tests.trace_workloads TRACE_SET FOLDER

copies the definitions of ``TRACE_SET`` to the trace set ``FOLDER`` and writes two workloads for each. Page
tables, offsets of sequences and other inputs that only make sense together are stored in safetensors files.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adaexplore.core.dialects.flashinfer import read_definition
from adaexplore.core.dialects.schema import Definition

LENGTHS = ((5, 70), (33, 1, 130))
"""Lengths of the sequences in each workload."""
_SPARE_PAGES = 3
_SIZES = {
    "M": 7, "batch_size": 3, "seq_len": 3, "num_tokens": 4, "pool_size": 5, "state_cache_size": 5,
    "num_qo_heads": 4, "num_kv_heads": 2, "max_seq_len": 64, "max_num_pages": 32,
}  # fmt: skip
_STORED = {"int32": "I32", "int64": "I64", "int8": "I8", "float32": "F32"}

Stored = dict[str, np.ndarray]


class Sequences:
    """Sequences whose last tokens are the queries, and where their keys are."""

    def __init__(self, lengths: tuple[int, ...], *, decode: bool, rng: np.random.Generator) -> None:
        self.lengths = np.array(lengths)
        self.queries = np.ones_like(self.lengths) if decode else (self.lengths + 1) // 2
        self._rng = rng

    def paged(self, page_size: int) -> tuple[dict[str, int], Stored]:
        """Return axes and inputs where keys are in pages."""
        pages = -(-self.lengths // page_size)
        total = int(pages.sum())
        axes = {"num_kv_indices": total, "num_pages": total + _SPARE_PAGES}
        indices = self._rng.permutation(axes["num_pages"])[:total]
        last = (self.lengths - 1) % page_size + 1
        return axes, {"kv_indptr": _offsets(pages), "kv_indices": indices, "kv_last_page_len": last}

    def ragged(self) -> tuple[dict[str, int], Stored]:
        """Return axes and inputs where keys follow one another."""
        total = int(self.lengths.sum())
        axes = {"total_kv": total, "total_seq_len": total, "num_seqs": len(self.lengths)}
        axes["len_cu_seqlens"] = len(self.lengths) + 1
        return axes, {"kv_indptr": _offsets(self.lengths), "cu_seqlens": _offsets(self.lengths)}


def _offsets(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)])


def workload(
    definition: Definition, lengths: tuple[int, ...], rng: np.random.Generator
) -> tuple[dict[str, int], dict[str, Any], Stored]:
    """Return the sizes of the variable axes, the inputs without tensors, and the stored tensors."""
    fixed = {name: axis.value for name, axis in definition.axes.items() if axis.value is not None}
    sequences = Sequences(lengths, decode="decode" in definition.name, rng=rng)
    paged = "kv_indptr" in definition.inputs and "page_size" in fixed
    found, together = sequences.paged(fixed["page_size"]) if paged else sequences.ragged()
    found |= {"total_q": int(sequences.queries.sum()), "len_indptr": len(lengths) + 1}
    together["qo_indptr"] = _offsets(sequences.queries)
    axes = _SIZES | found | fixed
    if "kv_indptr" in definition.inputs:
        axes["batch_size"] = len(lengths)
    if definition.op_type == "dsa_paged":
        axes["num_pages"] = 2 * fixed["topk"] // fixed["page_size"]
    stored = {name: together[name] for name in definition.inputs if name in together}
    values: dict[str, Any] = {}
    for name, tensor in definition.inputs.items():
        shape = tuple(int(each) if each.isdecimal() else axes[each] for each in tensor.shape or ())
        if tensor.shape is None:
            values[name] = _number(name)
        elif name not in stored:
            drawn = _drawn(name, shape, axes, rng)
            if drawn is not None:
                stored[name] = drawn
        if name in stored:
            held = np.resize(stored[name], shape)  # some definitions want one more last length
            stored[name] = held.astype(tensor.dtype)
    return {name: axes[name] for name in definition.axes if name not in fixed}, values, stored


def _number(name: str) -> float | int:
    return {"local_expert_offset": 0, "routed_scaling_factor": 2.5}.get(name, 1 / math.sqrt(128))


def _drawn(
    name: str, shape: tuple[int, ...], axes: Mapping[str, int], rng: np.random.Generator
) -> np.ndarray | None:
    """Return an input that a normal distribution does not suit; None for the others."""
    match name:
        case "sparse_indices":
            tokens = axes["num_pages"] * axes["page_size"]
            rows = np.stack([rng.permutation(tokens)[: shape[1]] for _ in range(shape[0])])
            rows[-1, shape[1] // 2 :] = -1  # no more tokens
            return rows
        case "seq_lens":
            return rng.integers(1, axes["max_num_pages"] * axes["page_size"] + 1, shape)
        case "block_table":
            return np.stack([rng.permutation(axes["num_pages"])[: shape[1]] for _ in range(shape[0])])
        case "k_index_cache_fp8":  # in each page all keys, then the scale of each as four bytes
            pages, size, _, bytes_of_token = shape
            keys = rng.choice(
                np.array([0x30, 0x38, 0xB0, 0xB8], np.uint8), (pages, size * (bytes_of_token - 4))
            )
            scales = np.full((pages, size), 0.5, np.float32).view(np.uint8)
            return np.concatenate([keys, scales], axis=1).view(np.int8).reshape(shape)
        case "positions":
            return rng.integers(0, axes["max_seq_len"], shape)
        case "state_batch_indices":
            return rng.permutation(axes["state_cache_size"])[: shape[0]]
        case "initial_state_indices":
            return rng.permutation(axes["pool_size"])[: shape[0]]
        case "topk_ids":  # the expert, and its weight as bfloat16 in the lower half
            experts = np.stack([rng.permutation(axes["num_experts"])[: shape[1]] for _ in range(shape[0])])
            weights = np.full(shape, 1 / shape[1], np.float32).view(np.uint32) >> 16
            return experts << 16 | weights
        case "top_k":
            return rng.integers(1, 50, shape)
        case "top_p":
            return rng.uniform(0.1, 0.9, shape)
    return None


def write_tensors(path: Path, tensors: Stored) -> None:
    """Write a safetensors file: the length of a header of JSON, the header, the data."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        begin, data = len(data), data + tensor.tobytes()
        header[name] = {
            "dtype": _STORED[tensor.dtype.name],
            "shape": tensor.shape,
            "data_offsets": (begin, len(data)),
        }
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write(trace_set: Path, folder: Path) -> int:
    """Write the definitions of ``trace_set`` with workloads to ``folder``; return how many there are."""
    found = sorted(trace_set.glob("definitions/**/*.json"))
    for path in found:
        definition = read_definition(path.read_text(encoding="utf-8"), path)
        place = path.relative_to(trace_set / "definitions")
        rng = np.random.default_rng(0)
        lines = []
        for number, lengths in enumerate(LENGTHS):
            axes, values, stored = workload(definition, lengths, rng)
            blob = f"blob/workloads/{place.with_suffix('')}_{number}.safetensors"
            if stored:
                write_tensors(folder / blob, stored)
            inputs: dict[str, Any] = {name: {"type": "random"} for name in definition.inputs}
            inputs |= {name: {"type": "scalar", "value": value} for name, value in values.items()}
            inputs |= {name: {"type": "safetensors", "path": blob, "tensor_key": name} for name in stored}
            one = {"uuid": f"{definition.name}-{number}", "axes": axes, "inputs": inputs}
            lines.append(json.dumps({"definition": definition.name, "workload": one}))
        target = folder / "definitions" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        listed = folder / "workloads" / place.with_suffix(".jsonl")
        listed.parent.mkdir(parents=True, exist_ok=True)
        listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(found)


if __name__ == "__main__":
    sys.stdout.write(f"{write(Path(sys.argv[1]), Path(sys.argv[2]))} definitions\n")
