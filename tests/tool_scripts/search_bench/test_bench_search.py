"""The command as scripts use it."""

import json
import signal

import pytest

from tool_scripts.bench_search import main
from tool_scripts.search_bench import calibration

POLICIES = {"best_of_n", "greedy", "islands", "paper_l2", "paper_l3", "default"}
ENVIRONMENT = """
top = 4.0

def root(rng):
    return {{"level": 1.0}}

def small(parent, rng):
    return {returned}

def large(parent, context, rng):
    value = 1.0 + rng.random()
    return {{"compiled": True, "correct": rng.random() < 0.7, "speedup": value}}
"""


@pytest.fixture(autouse=True)
def _few_runs(monkeypatch):
    monkeypatch.setattr(calibration, "RUNS_PER_TREE", 2)
    monkeypatch.setattr(calibration, "SHARES", (0.0, 0.6))


def answer(capsys, *arguments):
    code = main([*map(str, arguments), "--jobs", "1", "--json"])
    assert code == 0
    return json.loads(capsys.readouterr().out)


def environment_file(tmp_path, returned):
    file = tmp_path / f"mine_{len(list(tmp_path.iterdir()))}.py"
    file.write_text(ENVIRONMENT.format(returned=returned), encoding="utf-8")
    return file


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


def test_a_call_repeats_and_its_seeds_can_be_moved(capsys, trees):
    arguments = ("--tier", "a", "--fit", trees, "--seeds", 6, "--steps", 50)
    first = answer(capsys, *arguments)
    assert answer(capsys, *arguments) == first
    assert answer(capsys, *arguments, "--first-seed", 77) != first
    assert first["policies"]["default"]["x@100"] is None


def test_splits_fit_to_one_half_and_run_on_the_other(capsys, trees):
    result = answer(capsys, "--tier", "a", "--fit", trees, "--seeds", 4, "--splits", 1, "--steps", 50)
    assert [(part["fitted"], part["run_on"]) for part in result["splits"]] in (
        [(["2_1"], ["2_2"]), (["2_2"], ["2_1"])],
        [(["2_2"], ["2_1"]), (["2_1"], ["2_2"])],
    )


def test_tier_c_tells_families_apart(capsys):
    result = answer(capsys, "--tier", "c", "--seeds", 5, "--steps", 50)
    names = {"plateau", "deceptive", "late breakthrough", "noise", "failing infrastructure"}
    assert set(result["families"]) == names


def test_steps_in_flight_are_compared_with_one_at_a_time(capsys):
    found = answer(capsys, "--tier", "c", "--seeds", 10, "--steps", 60, "--in-flight", 3)["parallel"]
    assert found["in_flight"] == 3
    assert found["loss_low"] <= found["loss_per_sample"] <= found["loss_high"]


def test_processes_do_not_change_the_figures(capsys):
    code = main(["--tier", "c", "--seeds", "5", "--steps", "50", "--json", "--jobs", "2"])
    assert code == 0
    together = json.loads(capsys.readouterr().out)
    assert together == answer(capsys, "--tier", "c", "--seeds", 5, "--steps", 50)


@pytest.mark.parametrize(
    "returned",
    [
        '{"compiled": True, "correct": True, "speedup": 1.5}',
        '{"compiled": True, "correct": True, "fast_p": 1.5, "true_speedup": 1.4}',
        '{"score": {"compiled": True, "correct": True, "fast_p": 1.5}}',
        "(True, True, 1.5)",
        "1.5",
        "None",
    ],
)
def test_an_environment_of_ones_own_is_plugged_in(capsys, tmp_path, returned):
    check(answer(capsys, "--env", environment_file(tmp_path, returned), "--seeds", 3))


def test_an_environment_may_be_a_class(capsys, tmp_path):
    file = environment_file(tmp_path, "1.5")
    body = (
        file.read_text(encoding="utf-8").replace("(parent", "(self, parent").replace("(rng)", "(self, rng)")
    )
    indented = "\n".join("    " + line for line in body.splitlines())
    file.write_text("class Environment:\n" + indented, encoding="utf-8")
    check(answer(capsys, "--env", file, "--seeds", 3))


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_an_environment_prints_stays_out_of_the_json(capfd, tmp_path, jobs):
    file = environment_file(tmp_path, "(print('small'), os.system('echo large'), 1.5)[-1]")
    file.write_text("import os\nprint('loaded')\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    asked = ["--env", str(file), "--seeds", "1", "--steps", "3", "--jobs", jobs, "--json"]
    assert main(asked) == 0
    told = capfd.readouterr()
    assert set(json.loads(told.out)["policies"]) == POLICIES
    assert "loaded" in told.err


def test_the_table_is_for_people(capsys):
    assert main(["--tier", "c", "--seeds", "5", "--steps", "50", "--jobs", "1"]) == 0
    text = capsys.readouterr().out
    assert "default against paper_l2: " in text
    assert "4 in flight: " in text


def test_what_cannot_be_used_is_one_line(caplog, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("def root(rng): return 0\n", encoding="utf-8")
    raising = tmp_path / "raising.py"
    raising.write_text("import nothing_of_that_name\n", encoding="utf-8")
    for arguments, message in (
        (["--tier", "a"], "--tier a needs recorded trees: give --fit DIR"),
        (["--tier", "a", "--fit", str(tmp_path / "none")], "holds no recorded trees"),
        (["--env", str(tmp_path / "none.py")], "is no Python file"),
        (["--env", str(broken)], "lacks small, large"),
        (["--env", str(raising)], "cannot be loaded: ModuleNotFoundError"),
        (["--env", str(environment_file(tmp_path, "'fast'"))], "the environment returned 'fast'"),
        (["--env", str(environment_file(tmp_path, "(True, True, -1.0)"))], "speedup -1.0: give one above 0"),
        (["--env", str(environment_file(tmp_path, "(True, True, 'x')"))], "the speedup 'x': give a number"),
        (
            ["--env", str(environment_file(tmp_path, "{'speedup': [2.0]}"))],
            "the speedup '[2.0]': give a number",
        ),
        (["--env", str(environment_file(tmp_path, "parent['x']"))], "small raised KeyError: 'x'"),
        (["--env", str(environment_file(tmp_path, "exit(3)"))], "small raised SystemExit: 3"),
    ):
        caplog.clear()
        assert main([*arguments, "--seeds", "2", "--jobs", "1"]) == 2
        assert message in caplog.text
        assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("does", "jobs", "code"), [("os._exit(0)", "2", 1), ("signal.raise_signal(2)", "1", 130)]
)
def test_an_ended_process_and_an_interrupt_are_one_line(caplog, tmp_path, does, jobs, code):
    file = environment_file(tmp_path, does)
    file.write_text("import os, signal\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever ran in this process before
    try:
        assert main(["--env", str(file), "--seeds", "2", "--jobs", jobs]) == code
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(caplog.records) == 1


def test_json_that_cannot_be_written_is_one_line(caplog, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    asked = ["--tier", "c", "--seeds", "1", "--steps", "2", "--jobs", "1"]
    assert main([*asked, "--out", str(blocked / "result.json")]) == 2
    assert "cannot write" in caplog.text


def test_a_clock_that_stands_still_is_no_error(capsys):
    still = [part for name in ("call-s", "call-sigma", "evaluation-s") for part in (f"--{name}", 0)]
    assert (
        answer(capsys, "--tier", "c", "--seeds", 5, "--steps", 50, *still)["parallel"]["times_faster"] is None
    )
