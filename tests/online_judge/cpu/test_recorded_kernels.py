"""Kernels that a language model wrote for an earlier project, with the outcome they had on a GPU."""

from __future__ import annotations

import functools
import importlib.util
import json
import random
import re
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from triton.compiler.errors import CompilationError

from online_judge.cpu import NotCheckedError, simulated_cuda

TRACES = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"
SMALL = {
    "batch_size": "batch_size = 16",
    "in_features": "in_features = 128",
    "out_features": "out_features = 128",
    "in_channels": "in_channels = 8",
    "out_channels": "out_channels = 16",
    "height = width": "height = width = 16",
    "depth, height, width": "depth, height, width = 8, 16, 16",
}
PROBLEMS = ("18", "29", "63")


@dataclass(frozen=True)
class Recording:
    """One recorded candidate and its problem."""

    name: str
    reference: str
    candidate: str
    correct: bool
    error: str

    @property
    def failed_to_compile(self) -> bool:
        return "CompilationError" in self.error or "UnsupportedLanguageConstruct" in self.error


def _recordings() -> Iterator[Recording]:
    for file in sorted(TRACES.glob("kb-l2-p*.json")):
        problem = re.findall(r"p(\d+)", file.stem)[0]
        trace = json.loads(file.read_text())
        if problem in PROBLEMS:
            for step in trace["steps"]:
                if step["code"]:
                    name = f"p{problem}_step{step['step']}"
                    correct, error = bool(step["score"]["correct"]), step["error"] or ""
                    yield Recording(name, trace["reference_src"], step["code"], correct, error)


def _sample(count: int, *, correct: bool) -> list[Recording]:
    wanted = [r for r in _recordings() if (r.correct if correct else r.failed_to_compile)]
    return random.Random(11).sample(wanted, min(count, len(wanted)))


def _shrunk(reference: str) -> str:
    for name, replacement in SMALL.items():
        reference = re.sub(rf"^{name}\s*=.*$", replacement, reference, flags=re.M)
    return reference


def _load(folder: Path, name: str, source: str) -> ModuleType:
    file = folder / f"{name}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(f"recorded_{folder.name}_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _forward(recording: Recording, folder: Path, reference_source: str) -> tuple[Any, Any]:
    """Return outputs of the recorded candidate and of its reference, from the same seed."""
    reference = _load(folder, "reference", reference_source)
    inputs = reference.get_inputs()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.manual_seed(5)
        want = reference.Model(*reference.get_init_inputs())(*inputs)
        with simulated_cuda("sm_90"):
            candidate = _load(folder, "candidate", recording.candidate)
            torch.manual_seed(5)
            model = candidate.ModelNew(*reference.get_init_inputs()).cuda()
            got = model(*[value.cuda() for value in inputs])
    return got, want


if not TRACES.is_dir():
    pytest.skip("no recorded kernels beside the repository", allow_module_level=True)


@pytest.mark.parametrize("recording", _sample(4, correct=False), ids=lambda r: r.name)
def test_recorded_compile_error_is_a_compile_error_again(recording: Recording, tmp_path: Path) -> None:
    with pytest.raises(CompilationError):
        _forward(recording, tmp_path, recording.reference.replace("1024", "32"))


@functools.cache  # the samples of 15 and of 200 overlap
def _stopped(recording: Recording) -> str | None:
    """Return the compile gate's finding on a recorded candidate at its full size; None without one."""
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        torch.no_grad(),
        simulated_cuda("sm_90", executes=False),
    ):
        warnings.simplefilter("ignore")
        reference = _load(Path(folder), "reference", recording.reference)
        try:
            candidate = _load(Path(folder), "candidate", recording.candidate)
            candidate.ModelNew(*reference.get_init_inputs())(*reference.get_inputs())
        except NotCheckedError:
            return None
        except Exception as error:  # noqa: BLE001 - whatever a recorded kernel raises is a finding
            return f"{type(error).__name__}: {error}"[:200]
    return None


@pytest.mark.parametrize("correct", [False, True], ids=["failed", "correct"])
def test_full_size_gate_stops_only_compile_errors(correct: bool) -> None:
    found = {each.name: _stopped(each) for each in _sample(15, correct=correct)}
    wrong = {name: why for name, why in found.items() if (why is None) is not correct}
    assert len(wrong) <= 1, wrong  # what a version of Triton refuses, another may take


@pytest.mark.slow
@pytest.mark.parametrize("correct", [False, True], ids=["failed", "correct"])
def test_gate_is_nearly_always_right(correct: bool) -> None:
    found = {each.name: _stopped(each) for each in _sample(200, correct=correct)}
    wrong = {name: why for name, why in found.items() if (why is None) is not correct}
    assert len(wrong) <= (0.01 if correct else 0.05) * len(found), wrong


@pytest.mark.parametrize("recording", _sample(4, correct=True), ids=lambda r: r.name)
def test_recorded_correct_kernel_runs_at_small_size(recording: Recording, tmp_path: Path) -> None:
    got, want = _forward(recording, tmp_path, _shrunk(recording.reference))
    assert got.shape == want.shape
    torch.testing.assert_close(got.float(), want, rtol=5e-2, atol=5e-2)


@pytest.mark.slow
def test_most_recorded_correct_kernels_run_at_small_size(tmp_path: Path) -> None:
    recordings = _sample(60, correct=True)
    failed = {}
    for recording in recordings:
        folder = tmp_path / recording.name
        folder.mkdir()
        try:
            _forward(recording, folder, _shrunk(recording.reference))
        except Exception as error:  # noqa: BLE001 - whatever a recorded kernel raises is a finding
            failed[recording.name] = f"{type(error).__name__}: {error}"[:200]
    assert len(failed) <= 0.05 * len(recordings), failed
