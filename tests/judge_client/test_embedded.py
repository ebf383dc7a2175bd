"""The embedded judge guards itself with its run's token."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from adaexplore.core.errors import JudgeRequestError
from adaexplore.core.wire import EvaluationRequest
from adaexplore.judge_client.connection import Connection
from adaexplore.judge_client.embedded import embedded_judge
from adaexplore.judge_client.http import HttpJudge
from adaexplore.settings.config import RunConfig


def test_only_who_has_its_token_may_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_STATE", str(tmp_path / "other.sqlite"))
    monkeypatch.setenv("ADAEXPLORE_JUDGE_TOKEN", "of-another-judge")
    log_path = tmp_path / "judge.log"
    evaluation = EvaluationRequest()
    with (
        embedded_judge(RunConfig(judge_device="cpu", num_processes=1), log_path, "of-this-run") as url,
        httpx.Client(trust_env=False) as client,
    ):
        assert (
            HttpJudge(Connection(url, token="of-this-run", client=client), evaluation).identity().device
            == "cpu"
        )
        assert client.get(f"{url}/health").status_code == 401
        with pytest.raises(JudgeRequestError):
            HttpJudge(Connection(url, token="of-another-judge", client=client), evaluation).identity()
    assert "of-this-run" not in log_path.read_text()
    assert not (tmp_path / "other.sqlite").exists()
