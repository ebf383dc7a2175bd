from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main
from adaexplore.core.judging.profile import KernelProfile, Profile
from online_judge.verdict.reports import asm_of
from tests.judge_server import Answer, JudgeServer

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"
OWN = KernelProfile("row_sum", 2, 30.5, 0.9, True, 64, 3, 1024, 4, 512, 0.5)
PROFILE = Profile((OWN, KernelProfile("fill", 1, 3.0, 0.1)), 33.5, 40.0, 1000, 0.0, 0.4, "memory", "H200")


def profiled(tmp_path: Path, profile: Profile | None, *flags: str) -> int:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("class ModelNew: ...\n")
    found = None if profile is None else asdict(profile)
    report = {"status": "passed", "profile": found, "message": "" if found else "profiles need a GPU"}

    def jobs(method: str, _path: str, body: dict[str, object], _key: str | None) -> Answer:
        if method == "POST":
            assert body["kind"] == "profile"
            return 202, {"id": "1", "status": "queued", "position": 0}, {}
        return 200, {"id": "1", "kind": "profile", "state": "done", "report": report}, {}

    with JudgeServer(jobs=jobs) as server:
        return main(["profile", str(kernel), "--task", str(PROBLEM), "--judge", server.url, *flags])


def test_table_shows_kernels_with_occupancy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert profiled(tmp_path, PROFILE) == 0
    page = capsys.readouterr().out.splitlines()
    assert page[0].startswith("H200. One call: 33.5 us of GPU time")
    assert "40% of what the GPU's peak allows" in page[0]
    rows = [line.split() for line in page]
    assert ["row_sum", "2", "30.5", "90%", "64", "3", "50%", "1024", "4", "512"] in rows
    monkeypatch.setenv("COLUMNS", "80")
    profiled(tmp_path, PROFILE)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_json_is_the_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profiled(tmp_path, PROFILE, "--json") == 0
    assert json.loads(capsys.readouterr().out)["kernels"][0] == asdict(OWN)


def test_without_a_profile_the_reason_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert profiled(tmp_path, None) == 1
    assert "no profile: profiles need a GPU" in caplog.text


PTX = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry row_sum()
{
    ret;
}
"""


def assembled(tmp_path: Path, report: dict[str, object], asm: str) -> int:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("class ModelNew: ...\n")

    def jobs(method: str, _path: str, body: dict[str, Any], _key: str | None) -> Answer:
        if method == "POST":
            assert (body["kind"], body["request"]["asm"]) == ("compile", True)
            return 202, {"id": "1", "status": "queued", "position": 0}, {}
        return 200, {"id": "1", "kind": "compile", "state": "done", "report": report}, {}

    with JudgeServer(jobs=jobs) as server:
        command = ["profile", str(kernel), "--task", str(PROBLEM), "--judge", server.url]
        return main([*command, "--asm", asm, "--out", str(tmp_path / "code")])


@pytest.mark.parametrize(("asm", "said"), [("ptx", ".visible .entry row_sum()"), ("sass", "EXIT")])
def test_the_code_of_each_kernel_is_written(
    asm: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {"ok": True, "status": "passed", "asm": {"row_sum": PTX, "row_sum-2": PTX}}
    assert assembled(tmp_path, report, asm) == 0
    paths = [tmp_path / "code" / f"kernel.{name}.{asm}" for name in ("row_sum", "row_sum-2")]
    assert capsys.readouterr().out.splitlines() == list(map(str, paths))
    assert all(said in path.read_text() for path in paths)


def test_uncompilable_kernel_has_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = {"ok": False, "status": "compile", "message": "at 3:4: no such operator"}
    assert assembled(tmp_path, report, "ptx") == 1
    assert capsys.readouterr().out == "compile: at 3:4: no such operator\n"


def test_refused_assembly_prints_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = {"ok": True, "status": "passed", "asm": {"row_sum": PTX.replace("ret;", "no such thing;")}}
    assert assembled(tmp_path, report, "sass") == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert "take --asm ptx" in told[0]


def test_kernel_names_cannot_lead_out_of_the_folder() -> None:
    assert asm_of({"../evil": "x", "a/b": "x", "fine": "x", "fine-2": "y", "number": 3}) == {
        "fine": "x",
        "fine-2": "y",
    }
    assert asm_of(["no mapping"]) == {}
