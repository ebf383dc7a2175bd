"""Profiles and sweeps as a run asks a judge for them."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from adaexplore.core.errors import JudgeRequestError
from adaexplore.core.judging.profile import KernelProfile, Profile
from adaexplore.core.wire import EvaluationRequest
from adaexplore.judge_client.connection import Connection
from adaexplore.judge_client.dummy import DummyJudge
from adaexplore.judge_client.http import HttpJudge
from tests.judge_server import Answer, JudgeServer

from .test_jobs import TASK, Jobs, done, judge, stands, ticket

KERNEL = KernelProfile("softmax", 2, 30.5, 0.9, own=True, registers=64, spills=0, warps=4, occupancy=0.5)
PROFILE = Profile((KERNEL, KernelProfile("fill", 1, 3.0, 0.1)), 33.5, 40.0, 1000, 0.0, 0.4, "memory", "H200")


def report(profile: Profile | None, status: str = "passed", message: str = "") -> Answer:
    found = None if profile is None else asdict(profile)
    return stands("done", kind="profile", report={"status": status, "profile": found, "message": message})


def test_profile_is_a_job_of_its_own() -> None:
    jobs = Jobs([ticket()], [report(PROFILE)])
    with JudgeServer(jobs=jobs) as server:
        assert judge(server.url).profile(TASK, "class ModelNew: ...") == PROFILE
    (body,) = jobs.bodies
    assert (body["kind"], body["request"]["custom_model_src"]) == ("profile", "class ModelNew: ...")


@pytest.mark.parametrize(
    "answer",
    [
        report(None, "not_checked", "profiles need a judge with a GPU"),
        stands("failed", kind="profile", error="Reference failed: x"),
        stands("cancelled", kind="profile"),
    ],
)
def test_judge_without_facts_gives_none(answer: Answer) -> None:
    with JudgeServer(jobs=Jobs([ticket()], [answer])) as server:
        assert judge(server.url).profile(TASK, "x") is None


def test_judge_that_knows_no_profiles_gives_none() -> None:
    with JudgeServer(jobs=Jobs([(422, {"detail": "kind"}, {})], [])) as server:
        assert judge(server.url).profile(TASK, "x") is None
    with JudgeServer() as server:  # the release's
        assert judge(server.url).profile(TASK, "x") is None
    assert DummyJudge(0).profile(TASK, "x") is None


def test_refused_evaluation_stays_an_error() -> None:
    jobs = Jobs([(422, {"detail": "kind"}, {})], [])
    with JudgeServer(jobs=jobs) as server, pytest.raises(JudgeRequestError):
        judge(server.url).evaluate(TASK, "x")


@pytest.mark.parametrize(("force", "sent"), [(False, 20.0), (True, 0.0)])
def test_measuring_again_leaves_the_numbers_alone(force: bool, sent: float) -> None:
    jobs = Jobs([ticket()], [done()])
    with JudgeServer(jobs=jobs) as server:
        HttpJudge(Connection(server.url), EvaluationRequest(tf32="off", tune_s=20.0), force=force).evaluate(
            TASK, "x"
        )
    assert [body["request"]["tune_s"] for body in jobs.bodies] == [sent]
