"""The tasks whose gradients are judged, as files and as a part of the benchmark."""

import ast
from pathlib import Path

from tests import backward_tasks
from tool_scripts.judge_bench import candidates


def test_there_are_twenty_problems_of_both_sizes(tmp_path: Path) -> None:
    for size in ("small", "large"):
        found = backward_tasks.sources(size)  # type: ignore[arg-type]
        assert len(found) == 20
        for source in found.values():
            names = {getattr(node, "name", "") for node in ast.parse(source).body}
            assert {"Model", "get_inputs", "get_init_inputs"} <= names


def test_written_tasks_are_read_like_kernelbench(tmp_path: Path) -> None:
    backward_tasks.write(tmp_path)
    found = candidates.kernelbench(tmp_path, [1])
    assert [each.problem for each in found][:2] == ["level1-1_linear", "level1-2_mlp_gelu"]
    assert [each.reference for each in found] == list(backward_tasks.sources("large").values())
