from __future__ import annotations

import ast

import pytest
import torch

from adaexplore.core.plan import Purpose
from adaexplore.core.streams import stream
from adaexplore.core.text.code_blocks import extract_code
from adaexplore.llm.protocol import ModelRequest, TaskData
from adaexplore.offline_writer.tasks import compose
from adaexplore.offline_writer.writer import OfflineWriter
from adaexplore.tasks.module_check import module_problem
from synthesis.catalogue import read_catalogue


def task(seed: int, low: int = 2048, high: int = 8192) -> TaskData:
    return TaskData(tuple(read_catalogue().draw(24, stream(seed, "operators"))), 3, 6, low, high)


def made(seed: int) -> str:
    source = compose(task(seed), stream(seed, "compose"))
    assert source is not None
    return source


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_shapes_fit_and_sizes_are_kept(start: int) -> None:
    for seed in range(start, start + 20):
        source = made(seed)
        assert module_problem(source) is None
        space: dict[str, object] = {}
        exec(compile(source, f"seed {seed}", "exec"), space)
        inputs = space["get_inputs"]()  # type: ignore[operator]
        assert 2048 <= inputs[0].numel() <= 8192
        model = space["Model"](*space["get_init_inputs"]())  # type: ignore[operator]
        with torch.no_grad():
            assert isinstance(model(*inputs), torch.Tensor), source


def test_graphs_have_three_to_six_operators() -> None:
    counts = set()
    for seed in range(60):
        title = ast.get_docstring(next(n for n in ast.parse(made(seed)).body if isinstance(n, ast.ClassDef)))
        assert title is not None
        counts.add(title.count(",") + 1)
    assert counts == {3, 4, 5, 6}


def test_only_shown_operators_and_bridges_are_used() -> None:
    known = read_catalogue()
    bridges = {"torch.nn.functional.softplus", "torch.add", "torch.sigmoid", "torch.tanh"}
    for seed in range(30):
        shown = {entry.source for entry in task(seed).operators}
        inner = {
            name
            for entry in task(seed).operators
            for name in known.operators_in(f"class M:\n    def f(self):\n        return {entry.call}")
        }
        assert set(known.operators_in(made(seed))) <= shown | inner | bridges


def test_task_is_determined_by_seed_and_key() -> None:
    def reply(seed: int, key: str) -> str:
        return OfflineWriter(seed).complete(ModelRequest("p", Purpose.TASK, key, data=task(1))).text

    first = reply(0, "synth/1/task")
    assert extract_code(first) is not None
    assert reply(0, "synth/1/task") == first
    assert reply(0, "synth/2/task") != first
    assert reply(1, "synth/1/task") != first


def test_a_request_without_operators_is_answered_without_code() -> None:
    request = ModelRequest("p", Purpose.TASK, "k", data=TaskData((), 3, 6, 8, 9))
    assert "No operators" in OfflineWriter(0).complete(request).text
