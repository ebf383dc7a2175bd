"""The command as scripts use it."""

import json

import pytest

from tool_scripts import bench_search
from tool_scripts.bench_search import main
from tool_scripts.search_bench import fit

POLICIES = {"best_of_n", "greedy", "islands", "paper_l2", "paper_l3", "default"}


@pytest.fixture(autouse=True)
def _few_runs(monkeypatch):
    monkeypatch.setattr(fit, "RUNS_PER_TREE", 2)
    monkeypatch.setattr(fit, "SHARES", (0.0, 0.6))


def answer(capsys, *arguments):
    code = main([*map(str, arguments), "--jobs", "1"])
    assert code == 0
    return json.loads(capsys.readouterr().out)


def check(result):
    assert set(result["policies"]) == POLICIES
    for figures in result["policies"].values():
        assert {"x@10", "x@25", "x@50", "x@100", "auc50"} <= set(figures)
        reached = [figures[f"x@{step}"] for step in (10, 25, 50, 100)]
        assert reached == sorted(reached)
        assert 0 <= figures["auc50"] <= figures["share@50"]
    for name in ("default_vs_paper_l2", "default_vs_paper_l3"):
        assert set(result[name]) == {"gain", "low", "high"}


def test_tier_a_fits_to_a_folder_and_compares(capsys, trees):
    result = answer(capsys, "--tier", "a", "--fit", trees, "--seeds", 8)
    check(result)
    assert result["environments"] == result["fit"]["trees"] == ["2_1", "2_2"]
    shares = {name: figures["share@50"] for name, figures in result["policies"].items()}
    mine, theirs = shares["default"], shares["paper_l2"]
    assert result["default_vs_paper_l2"]["gain"] == pytest.approx(mine / theirs - 1, abs=1e-3)


def test_figures_repeat_unless_first_seed_changes(capsys, trees):
    arguments = ("--tier", "a", "--fit", trees, "--seeds", 6, "--steps", 50)
    first = answer(capsys, *arguments)
    assert answer(capsys, *arguments) == first
    assert answer(capsys, *arguments, "--first-seed", 77) != first
    assert first["policies"]["default"]["x@100"] is None


def test_tier_c_tells_families_apart(capsys):
    result = answer(capsys, "--tier", "c", "--seeds", 5, "--steps", 50)
    names = {"plateau", "deceptive", "late breakthrough", "noise", "failing infrastructure"}
    assert set(result["families"]) == names


def test_parallel_steps_are_compared_with_sequential_ones(capsys):
    found = answer(capsys, "--tier", "c", "--seeds", 10, "--steps", 60, "--in-flight", 3)["parallel"]
    assert found["in_flight"] == 3
    assert found["loss_low"] <= found["loss_per_sample"] <= found["loss_high"]


def test_processes_do_not_change_the_figures(capsys):
    code = main(["--tier", "c", "--seeds", "5", "--steps", "50", "--jobs", "2"])
    assert code == 0
    together = json.loads(capsys.readouterr().out)
    assert together == answer(capsys, "--tier", "c", "--seeds", 5, "--steps", 50)


def test_unusable_input_gives_one_line(caplog, tmp_path):
    for arguments, message in (
        (["--tier", "a"], "--tier a needs recorded trees: give --fit DIR"),
        (["--tier", "a", "--fit", str(tmp_path / "none")], "holds no recorded trees"),
    ):
        caplog.clear()
        assert main([*arguments, "--seeds", "2", "--jobs", "1"]) == 2
        assert message in caplog.text
        assert len(caplog.records) == 1


def test_an_interrupt_is_one_line(caplog, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_search, "compare", interrupted)
    assert main(["--tier", "c", "--seeds", "2", "--jobs", "1"]) == 130
    assert len(caplog.records) == 1


def test_json_that_cannot_be_written_is_one_line(caplog, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    asked = ["--tier", "c", "--seeds", "1", "--steps", "2", "--jobs", "1"]
    assert main([*asked, "--out", str(blocked / "result.json")]) == 5
    assert "cannot write" in caplog.text


def test_a_frozen_clock_raises_no_error(capsys):
    still = [part for name in ("call-s", "call-sigma", "evaluation-s") for part in (f"--{name}", 0)]
    assert (
        answer(capsys, "--tier", "c", "--seeds", 5, "--steps", 50, *still)["parallel"]["times_faster"] is None
    )
