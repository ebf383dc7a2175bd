from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaexplore.core.plan import Plan, Purpose, StepKind
from adaexplore.llm.protocol import ModelRequest
from adaexplore.prompts.blocks import ShownKernel
from adaexplore.prompts.prompt import Prompt
from tests.prompt_cache import Hit, MarkedCache, PrefixCache
from tool_scripts import bench_prompts
from tool_scripts.bench_prompts import Bill, main, replay
from tool_scripts.prompt_bench.causes import Causes
from tool_scripts.prompt_bench.searches import Step, offline_search, recorded_search

PROBLEM = Path(__file__).resolve().parents[2] / "datasets/quickstart/level2/3_scaled_masked_softmax.py"


def test_search_is_replayed_in_every_layout_and_dialect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "figures.json"
    monkeypatch.setattr(bench_prompts, "SELECTIONS", ("uct",))
    assert main(["--problems", str(PROBLEM), "--steps", "4", "--out", str(out)]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert json.loads(out.read_text(encoding="utf-8")) == figures
    found = figures["offline_uct"]
    for dialect in ("openai", "anthropic"):
        paper, shared = found[dialect]["paper_per_step"], found[dialect]["shared_per_step"]
        assert 1 == shared["requests"] <= paper["requests"]
        assert shared["read_from_cache"] > paper["read_from_cache"]
        assert shared["billed"] == pytest.approx(shared["sent"] - 0.9 * shared["read_from_cache"], abs=0.02)
        assert sum(found[dialect]["shared_billed_for"].values()) == pytest.approx(shared["billed"], abs=2)
        assert found[dialect]["least_in_any_order"] < shared["billed"]
        assert found[dialect]["fewer"] == pytest.approx(1 - shared["billed"] / paper["billed"], abs=1e-3)
    assert found["anthropic"]["paper_per_step"]["read_from_cache"] == 0
    assert found["anthropic"]["shared_per_step"]["written_to_cache"] > 0
    assert found["anthropic"]["fewer_with_writes"] < found["anthropic"]["fewer"]


def test_every_search_step_is_sent_with_its_view() -> None:
    search = offline_search(PROBLEM, 3, 0)
    bill = replay(search, "paper", "openai", 0, Causes(300.0))
    assert (bill.steps, bill.requests) == (3, sum(len(step.replies("paper")) for step in search.steps))


def test_only_paper_layout_requests_a_separate_review() -> None:
    shown = (ShownKernel("a", None), ShownKernel("b", None))
    step = Step(Plan(3, StepKind.SMALL, 2, (2, 1)), shown, "do", ("edits", "repair"))
    assert step.replies("paper") == ("do", "edits", "repair")
    assert step.replies("shared") == ("do\n\nedits", "repair")
    assert step.view("paper", arranged=True) == shown


def test_paper_layout_arranges_pool_oldest_first_for_cache() -> None:
    older, newer = ShownKernel("a", None), ShownKernel("b", None)
    step = Step(Plan(3, StepKind.LARGE, 2, (2, 1)), (newer, older), None, ("kernel",))
    assert step.view("shared", arranged=True) == step.view("paper", arranged=False) == (newer, older)
    assert step.view("paper", arranged=True) == (older, newer)


def request(*parts: str, now: str = "now!") -> ModelRequest:
    prompt = Prompt(now, parts[0], parts[1], parts[2:])
    return ModelRequest(prompt.text, Purpose.LARGE, "k", prompt.cuts)


def test_a_bill_is_split_by_cause() -> None:
    fixed, task, ours, theirs = "f" * 400, "t" * 200, "a" * 80, "b" * 40
    causes = Causes(300.0)
    causes.add(request(fixed, task, "## Kernels so far\n### Kernel 0\n" + ours), 0, 0.0)
    first = {"cached": 0.0, "new": 20 + 31 / 4, "forgotten": 0.0, "again": 0.0, "other": 151.0}
    assert causes.billed == first
    assert causes.least == 151 + 20 + 31 / 4
    causes.add(request(fixed, task, "### Kernel 0\n" + theirs, "### Kernel 1\n" + ours), 150, 100.0)
    second = dict(causes.billed)
    assert second["cached"] == pytest.approx(15)
    assert second["new"] - first["new"] == 10 + 13 / 4
    assert (second["again"], second["other"]) == (20 + 13 / 4, 152.0)
    causes.add(request(fixed, task, "### Kernel 0\n" + theirs), 150, 401.0)
    assert causes.billed["forgotten"] == 10 + 13 / 4


def test_no_searches_are_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert main(["--problems", str(PROBLEM), "--steps", "1", "--traces", str(tmp_path)]) != 0
    assert "no searches to measure" in caplog.text


def test_recorded_trees_are_read(tmp_path: Path) -> None:
    kernel = "class ModelNew:\n    size = {}\n"
    root = {
        "step": 0,
        "node_id": 0,
        "parent_node_id": None,
        "context_node_ids": [],
        "created_by": "dummy_root",
    }
    nothing = {"code": "", "error": None, "runtime_us": None, "score": {"correct": 0, "fast_p": 0.0}}
    passed = {"error": None, "runtime_us": 0.5, "score": {"correct": 1, "fast_p": 2.0}}
    large = {"step": 1, "node_id": 1, "parent_node_id": 0, "context_node_ids": [], "created_by": "large_step"}
    small = {
        "step": 2,
        "node_id": 2,
        "parent_node_id": 1,
        "context_node_ids": [1],
        "created_by": "small_step",
    }
    steps = [
        {**root, **nothing},
        {**large, **passed, "code": kernel.format(1)},
        {**small, **passed, "code": kernel.format(2)},
    ]
    path = tmp_path / "tree.json"
    path.write_text(json.dumps({"reference_src": "class Model: ...", "steps": steps}))
    search = recorded_search(path, 50)
    assert [len(step.replies("paper")) for step in search.steps] == [1, 2]
    assert search.steps[1].shown[0].source == kernel.format(1)
    assert replay(search, "paper", "anthropic", 0, Causes(300.0)).requests == 3
    assert replay(search, "shared", "anthropic", 0, Causes(300.0)).requests == 2


def test_bill_discounts_cached_tokens_and_surcharges_written_ones() -> None:
    bill = Bill(1, 1, 1000, 400, 200)
    assert (bill.billed, bill.billed_with_writes) == (640.0, 690.0)


def body(*blocks: tuple[str, bool]) -> dict[str, object]:
    content = [
        {"type": "text", "text": text, **({"cache_control": {"type": "ephemeral"}} if marked else {})}
        for text, marked in blocks
    ]
    return {"messages": [{"role": "user", "content": content}]}


def test_marked_cache_hit_renews_its_lifetime() -> None:
    cache, a, b = MarkedCache(), "a" * 8000, "b" * 4000
    assert cache.look_up(body((a, True), (b, True), ("x", False)), 0.0) == Hit(0, 3000)
    assert cache.look_up(body((a, True), (b, True), ("y", False)), 299.0) == Hit(3000, 0)
    assert cache.look_up(body((a, True), ("y", False)), 598.0) == Hit(2000, 0)
    assert cache.look_up(body((a, True), (b, True)), 599.5) == Hit(2000, 1000)
    assert cache.look_up(body((a, False), (b, True)), 900.0) == Hit(0, 3000)


def test_marked_cache_limits_look_back_and_marks() -> None:
    a, block = "a" * 8000, ("b" * 40, False)
    for between, read in ((18, 2000), (19, 0)):
        cache = MarkedCache()
        cache.look_up(body((a, True)), 0.0)
        assert cache.look_up(body((a, False), *[block] * between, ("c", True)), 1.0).read == read
    with pytest.raises(ValueError, match="maximum of 4"):
        cache.look_up(body(*[("a", True)] * 5), 0.0)


def test_short_beginnings_are_not_cached() -> None:
    marked, prefix = MarkedCache(), PrefixCache()
    for _ in range(2):
        assert marked.look_up(body(("a" * 4000, True)), 0.0) == Hit(0, 0)
        assert prefix.look_up(body(("a" * 4000, False)), 0.0) == Hit(0)


def test_prefix_cache_counts_in_128_token_steps() -> None:
    cache = PrefixCache()
    cache.look_up(body(("a" * 9000, False)), 0.0)
    assert cache.look_up(body(("a" * 8999 + "x", False)), 300.0) == Hit(2176)
    assert cache.look_up(body(("a" * 9000, False)), 601.0) == Hit(0)
