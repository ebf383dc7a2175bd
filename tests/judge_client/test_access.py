from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from adaexplore.core.errors import JudgeUnavailableError
from adaexplore.core.task import Task
from adaexplore.judge_client.access import JudgeAccess, open_judge
from adaexplore.run.build import judge_facts
from adaexplore.settings.config import RunConfig
from tests.judge_server import JudgeServer

TASK = Task(1, "5", "5", "class Model: ...\n", "fp32", Path("5.py"))


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({"gpu_name": "A6000"}, "A6000"),
        ({"gpu_name": "A6000", "test_source": "SYN"}, None),
        ({"gpu_name": "A6000", "baseline": "compile"}, None),
        ({}, None),
    ],
)
def test_gpu_name_is_sent_only_for_recorded_baselines(
    tmp_path: Path, settings: dict[str, str], sent: str | None
) -> None:
    with JudgeServer() as server:
        config = RunConfig.model_validate(
            {"use_remote_eval": True, "remote_eval_url": server.url, **settings}
        )
        with open_judge(config, tmp_path / "judge.log", threading.Event()) as access:
            access.first.evaluate(TASK, "x")
        assert [body["gpu_name"] for _, body in server.requests] == [sent]


def test_temporary_log_is_deleted_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = []

    @contextmanager
    def started(_config: RunConfig, log_path: Path, _token: str) -> Iterator[str]:
        log_path.write_text("ready\n")
        logs.append(log_path)
        with JudgeServer() as server:
            yield server.url

    monkeypatch.setattr("adaexplore.judge_client.access.embedded_judge", started)
    with open_judge(RunConfig()):
        assert logs[0].read_text() == "ready\n"
    assert not logs[0].parent.exists()


def test_gpu_ids_are_used_in_turn(tmp_path: Path) -> None:
    with JudgeServer() as server:
        config = RunConfig.model_validate(
            {"use_remote_eval": True, "remote_eval_url": server.url, "gpu_ids": [3, 1]}
        )
        with open_judge(config, tmp_path / "judge.log", threading.Event()) as access:
            for home in range(4):
                with access.turn(home) as judge:
                    judge.evaluate(TASK, "x")
        assert [body["device"] for _, body in server.requests] == [3, 1, 3, 1]


def models_access(server: JudgeServer, tmp_path: Path, *models: str) -> AbstractContextManager[JudgeAccess]:
    settings = {"use_remote_eval": True, "remote_eval_url": server.url, "gpu_name": "A6000", "tune_s": 5.0}
    config = RunConfig.model_validate({**settings, "gpu_models": list(models)})
    return open_judge(config, tmp_path / "judge.log", threading.Event())


def test_each_gpu_model_has_a_judge(tmp_path: Path) -> None:
    with JudgeServer() as server:
        with models_access(server, tmp_path, "CPU", "test") as access:
            access.first.evaluate(TASK, "x")
            assert list(access.other_gpus) == ["test"]
            access.other_gpus["test"].evaluate(TASK, "x")
        sent = [(body["gpu"], body["gpu_name"], body["tune_s"]) for _, body in server.requests]
    assert sent == [("CPU", "A6000", 5.0), ("test", None, 0.0)]


def test_missing_gpu_model_is_named_at_the_start(tmp_path: Path) -> None:
    with (
        JudgeServer() as server,
        pytest.raises(
            JudgeUnavailableError, match=r"no GPU 'H200' now; choose gpu_models among: CPU \(test\)"
        ),
        models_access(server, tmp_path, "CPU", "H200"),
    ):
        pass
    assert not server.requests


def test_tier_and_baseline_reach_judge_and_prompts(tmp_path: Path) -> None:
    with JudgeServer() as server:
        config = RunConfig.model_validate(
            {
                "preset": "default",
                "baseline": "max-autotune",
                "use_remote_eval": True,
                "remote_eval_url": server.url,
            }
        )
        with open_judge(config, tmp_path / "judge.log", threading.Event()) as access:
            access.first.evaluate(TASK, "x")
        ((_, body),) = server.requests
    assert (body["tier"], body["baseline"], body["tolerance"]) == ("strict", "max-autotune", 5e-2)
    facts = judge_facts(config, access.identity)
    assert (facts.tier, facts.shows_flags) == ("strict", True)
    paper = judge_facts(RunConfig(), access.identity)
    assert (paper.tier, paper.shows_flags) == ("legacy", False)
