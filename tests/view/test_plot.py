"""Figures as files."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("resvg_py")

from adaexplore.cli.main import main
from adaexplore.report.task_result import Best
from adaexplore.view.model import gm10_of
from tests.view.runs import verdict, write_run, write_step


def test_stats_writes_figures_as_svg_and_png(tmp_path, capsys):
    run, out = write_run(tmp_path / "a<b", 2, 12), tmp_path / "figures"
    assert main(["stats", str(run), "--plot", str(out)]) == 0
    names = {"gm10_over_steps", "gm10_over_dollars", "gm10_over_seconds", "best_2_1", "best_2_2"}
    assert {path.name for path in out.iterdir()} == {
        f"{name}.{end}" for name in names for end in ("svg", "png")
    }
    for name in names:
        svg = ElementTree.parse(out / f"{name}.svg").getroot()
        assert svg.find("{http://www.w3.org/2000/svg}style") is not None
        data = (out / f"{name}.png").read_bytes()
        assert data.startswith(b"\x89PNG")
        assert int.from_bytes(data[16:20], "big") == 3 * int(svg.attrib["width"])
    assert "problem_id" in capsys.readouterr().out


def test_several_runs_share_one_figure(tmp_path):
    runs = [str(write_run(tmp_path / name, 1, 6)) for name in ("first", "second")]
    assert main(["stats", *runs, "--plot", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "gm10_over_steps.svg").read_text()
    assert ">first<" in text
    assert ">second<" in text


def test_figures_left_out_say_why(tmp_path, caplog):
    run = tmp_path / "run"
    write_step(run / "2_1", 1, {**verdict("passed", 1.0), "runtime": -1.0, "runtime_stats": {}})
    assert main(["stats", str(run), "--plot", str(tmp_path / "out")]) == 0
    assert "nothing was drawn: no correct kernel was timed" in caplog.text
    assert "plots are in" not in caplog.text
    caplog.clear()
    write_step(run / "2_2", 1, verdict("passed", 2.0))
    (run / "2_2" / "step_1_usage.json").unlink()
    assert main(["stats", str(run), "--plot", str(tmp_path / "out")]) == 0
    assert "no plot over dollars: a run does not say what its steps took" in caplog.text
    assert "no plot of 2_1: it has no correct kernel that was timed" in caplog.text


def test_untimed_tasks_stay_out_of_the_mean():
    timed, failed, untimed = Best(1, True, 4.0), Best(), Best(1, True, None)
    assert gm10_of([timed, failed, untimed]) == pytest.approx(0.4**0.5)
    assert gm10_of([failed, untimed]) is None
