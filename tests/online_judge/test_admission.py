"""Requests that are answered without being queued: large sources, refused folders."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from online_judge.slots import build_folders

from .live import LiveJudge, running_judge
from .sources import HONEST, PASSING, REFERENCE, with_forward
from .test_v2_jobs import judged, look, metric, submit

LIMIT = 2**18
LARGE = PASSING + "x=0\n" * 10**6
BUILDS = "print(repr(os.environ['TORCH_EXTENSIONS_DIR']))\nraise ValueError"


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("strict") / "builds"


@pytest.fixture(scope="module")
def strict(builds: Path) -> Iterator[LiveJudge]:
    """Start a judge in manual mode with a low limit of sources and with a folder for builds."""
    settings = {"MAX_SOURCE_BYTES": "2000", "BUILD_DIR": str(builds), "GPU_ALLOCATION_MODE": "manual"}
    with running_judge(builds.parent, **settings) as live:
        yield live


def padded(source: str, size: int) -> str:
    return source + "#" * (size - len(source))


@pytest.mark.parametrize("kind", ["candidate", "compile", "profile"])
def test_large_candidate_has_its_answer_at_once(judge: LiveJudge, kind: str) -> None:
    begin = time.monotonic()
    ticket = submit(judge, LARGE, kind=kind).json()
    answer = look(judge, ticket["id"], wait=0)
    assert time.monotonic() - begin < 2
    assert (ticket["status"], answer["state"], answer["cached"]) == ("done", "done", False)
    found = answer["verdict"] if kind == "candidate" else answer["report"]
    assert found["status"] == "load"
    assert f"{len(LARGE)} bytes" in str(found)
    assert f"{LIMIT} (MAX_SOURCE_BYTES)" in str(found)


def test_large_candidate_is_a_load_failure_of_v1(judge: LiveJudge) -> None:
    begin = time.monotonic()
    answer = judge.evaluate(LARGE)
    assert time.monotonic() - begin < 2
    assert (answer["success"], answer["compiled"], answer["correctness"]) == (True, False, False)
    metadata = answer["metadata"]
    assert metadata["status"] == "load"
    assert "MAX_SOURCE_BYTES" in metadata["compilation_error"]
    assert "MAX_SOURCE_BYTES" in metadata["feedback"]


def test_large_reference_is_a_problem_error(judge: LiveJudge) -> None:
    error = f"the reference has {len(LARGE)} bytes; this judge takes at most {LIMIT} (MAX_SOURCE_BYTES)"
    answer = judge.evaluate(PASSING, reference=LARGE)
    assert (answer["success"], answer["error"]) == (False, f"Reference failed: {error}")
    assert answer["metadata"]["error"] == answer["error"]
    report = judge.post("/v2/problem", {"original_model_src": LARGE}).json()
    assert (report["ok"], report["reason"]) == (False, error)
    for kind in ("candidate", "compile", "problem"):
        job = judged(judge, PASSING, kind=kind, request={"original_model_src": LARGE})
        if kind == "problem":
            assert (job["state"], job["report"]["reason"]) == ("done", error)
        else:
            assert (job["state"], job["error"]) == ("failed", f"Reference failed: {error}")


def test_source_at_the_limit_is_judged(judge: LiveJudge) -> None:
    before = metric(judge, 'evaluations_total{kind="candidate",status="load"}')
    assert judge.evaluate(padded(PASSING, LIMIT))["correctness"] is True
    assert judge.evaluate(padded(PASSING, LIMIT + 1))["correctness"] is False
    assert metric(judge, 'evaluations_total{kind="candidate",status="load"}') == before + 1


def test_source_size_limit_is_configurable_in_bytes(strict: LiveJudge) -> None:
    source = with_forward(HONEST)
    assert strict.evaluate(source + "# " + "é" * 400)["correctness"] is True
    assert strict.evaluate(source + "# " + "é" * 1000)["metadata"]["status"] == "load"


def test_manual_mode_refuses_a_missing_device(strict: LiveJudge) -> None:
    assert strict.post("/evaluate", {"device": 3}).status_code == 400
    assert strict.evaluate(PASSING, device=0)["correctness"] is True
    assert strict.evaluate(PASSING)["correctness"] is True


def test_build_folder_below_the_judges_is_made(strict: LiveJudge, builds: Path, tmp_path: Path) -> None:
    judge, root = strict, builds
    for name in ("a/b", "a b", "a\x1cb", "a\nb", "a\\b", "é\u2028"):
        wanted = root / name
        answer = judge.evaluate(with_forward(BUILDS), build_dir=str(wanted))
        assert repr(str(wanted)) in answer["metadata"].get("stdout", ""), (name, answer)
        assert wanted.is_dir()
    assert repr(str(root)) in judge.evaluate(with_forward(BUILDS))["metadata"]["stdout"]
    elsewhere: list[Any] = [tmp_path / "other", root / ".." / "other", "/root/x", "relative", "a\0b"]
    (root / "link").symlink_to(tmp_path)
    for each in [*elsewhere, root / "link" / "other"]:
        body = {"original_model_src": REFERENCE, "custom_model_src": PASSING, "build_dir": str(each)}
        response = judge.post("/evaluate", body)
        assert response.status_code == 400, each
        (error,) = response.json()["errors"]
        assert (error["field"], str(root) in error["message"]) == ("body.build_dir", True)
        response = submit(judge, request={"build_dir": str(each)})
        assert response.status_code == 422
        assert response.json()["errors"][0]["field"] == "body.request.build_dir"
    assert not (tmp_path / "other").exists()


def test_judge_without_a_build_folder_takes_none(judge: LiveJudge, tmp_path: Path) -> None:
    response = judge.post("/evaluate", {"build_dir": str(tmp_path / "x")})
    assert response.status_code == 400
    assert "BUILD_DIR" in response.json()["errors"][0]["message"]
    assert not (tmp_path / "x").exists()
    assert judge.evaluate(PASSING, build_dir="")["correctness"] is True


def test_link_that_appears_after_admission_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    assert build_folders.refusal(str(root / "a" / "b"), str(root)) is None
    (root / "a").symlink_to(outside)
    assert build_folders.made(str(root / "a" / "b"), str(root)) is None
    assert not any(outside.iterdir())


def test_made_folder_is_a_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    made = build_folders.made(str(tmp_path / "link" / "a"), str(tmp_path / "link"))
    assert made == str(tmp_path / "real" / "a")
    assert build_folders.made(None, str(tmp_path / "link")) == str(tmp_path / "real")
    assert build_folders.made(None, None) is None
