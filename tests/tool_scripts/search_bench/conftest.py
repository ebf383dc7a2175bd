"""Small recorded trees."""

import json

import pytest

READS = "class ModelNew:\n    def forward(self, x):\n        return work(x)  # {}\n"


def step(number, parent, kind, speedup, context=(), code=None):
    return {
        "step": number,
        "node_id": number,
        "parent_node_id": parent,
        "context_node_ids": list(context),
        "created_by": f"{kind}_step",
        "score": {"compiled": True, "correct": speedup > 0, "fast_p": speedup},
        "code": READS.format(number) if code is None else code,
    }


def bundle(name, steps):
    root = {"step": 0, "node_id": 0, "parent_node_id": None, "created_by": "dummy_root"}
    return {"label": name, "run_dir": f"runs/{name}", "steps": [root, *steps]}


def growing(factor):
    """Return a tree of 24 steps: every third one fails, small steps climb, a lineage has four nodes."""
    steps, latest = [], 0
    for number in range(1, 25):
        kind = "large" if number % 4 == 1 else "small"
        speedup = 0.0 if number % 3 == 2 else 1 + factor * number / 24
        context = [latest] if latest else []
        steps.append(step(number, latest if kind == "small" else 0, kind, speedup, context))
        latest = number if speedup else latest
    return steps


@pytest.fixture
def trees(tmp_path):
    """Return a folder with two usable trees and one without a gain."""
    folder = tmp_path / "trees"
    folder.mkdir()
    flat = [step(1, 0, "large", 0.5), step(2, 1, "small", 0.9, [1])]
    for name, steps in (("2_1", growing(2.0)), ("2_2", growing(5.0)), ("2_3", flat)):
        (folder / f"p{name}.json").write_text(json.dumps(bundle(name, steps)), encoding="utf-8")
    return folder
