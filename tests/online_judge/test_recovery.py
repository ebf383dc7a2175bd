"""Killed processes, in every role."""

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from online_judge.processes.fork_client import ForkClient
from online_judge.slots.conversation import Attempts

from .live import LiveJudge, alive, judge_environment, parent, start_command, wait_until
from .sources import HONEST, NOTED, REFERENCE, with_forward

SLOW_ONCE = with_forward(
    NOTED + "if not os.path.exists('slept'):\n    open('slept', 'w').close()\n    time.sleep(1.5)\n" + HONEST
)
FOREVER = with_forward(NOTED + "time.sleep(600)")
# names the evaluator that runs it: others may wait for a job, and the next attempt takes one of those
NAMING_REFERENCE = "open('/proc/self/comm', 'w').write('job-evaluator')\n" + REFERENCE


def in_background(judge: LiveJudge, candidate: str) -> tuple[threading.Thread, list[dict[str, Any]]]:
    answers: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: answers.append(judge.evaluate(candidate, NAMING_REFERENCE)))
    thread.start()
    return thread, answers


@pytest.mark.parametrize("role", ["judge-candidate", "judge-supervise", "job-evaluator", "judge-fork"])
def test_job_is_retried_when_a_process_is_killed(frail_judge: LiveJudge, role: str) -> None:
    judge = frail_judge
    thread, answers = in_background(judge, SLOW_ONCE)
    (candidate,) = wait_until(lambda: judge.processes("noted"))
    supervisor = parent(candidate)
    around = [
        candidate,
        supervisor,
        *(pid for pid in judge.processes("judge-init") if parent(pid) == supervisor),
    ]
    pid = {"judge-candidate": candidate, "judge-supervise": supervisor}.get(role) or judge.processes(role)[0]
    os.kill(pid, signal.SIGKILL)
    thread.join(60)
    assert answers[0]["metadata"]["status"] == "passed", answers
    assert not alive(pid)
    wait_until(lambda: not any(alive(each) for each in around))
    assert judge.processes("noted") == []
    assert judge.evaluate(with_forward(HONEST))["correctness"] is True


def test_candidate_process_killed_twice_is_a_crash(frail_judge: LiveJudge) -> None:
    judge = frail_judge
    thread, answers = in_background(judge, FOREVER)
    (first,) = wait_until(lambda: judge.processes("noted"))
    os.kill(first, signal.SIGKILL)
    (second,) = wait_until(lambda: [pid for pid in judge.processes("noted") if pid != first])
    os.kill(second, signal.SIGKILL)
    thread.join(60)
    assert answers[0]["metadata"]["status"] == "crash"
    assert "by signal 9" in answers[0]["metadata"]["feedback"]
    assert "died" not in answers[0]["metadata"]  # the judge's own note
    assert answers[0]["success"] is True


@pytest.mark.parametrize(
    ("role", "times"), [("job-evaluator", 2), pytest.param("judge-fork", 4, marks=pytest.mark.long)]
)
def test_processes_dying_repeatedly_count_as_candidate_crash(
    frail_judge: LiveJudge, role: str, times: int
) -> None:
    judge = frail_judge
    thread, answers = in_background(judge, FOREVER)
    seen: set[int] = set()

    def fresh() -> list[int]:
        return [pid for pid in judge.processes("noted") if pid not in seen]

    for _ in range(times):
        seen.update(wait_until(fresh))
        (pid,) = judge.processes(role)
        os.kill(pid, signal.SIGKILL)
    thread.join(60)
    assert answers[0]["metadata"]["status"] == "crash", answers
    assert answers[0]["success"] is True


def test_candidate_deleting_judge_folder_harms_no_others(frail_judge: LiveJudge) -> None:
    clearing = with_forward(
        "import shutil\nabove = os.path.dirname(os.getcwd())\nshutil.rmtree(above)\nos.listdir(above)"
    )
    metadata = frail_judge.evaluate(clearing)["metadata"]
    assert metadata["status"] == "launch"
    assert "judge-" not in metadata["feedback"]
    assert frail_judge.evaluate(with_forward(HONEST))["correctness"] is True


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_survives_the_judge(own_judge: Callable[..., LiveJudge], tmp_path: Path, signum: int) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    judge = own_judge(TMPDIR=str(temporary))
    escaping = with_forward(
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    open('/proc/self/comm', 'w').write('noted')\n"
        "    time.sleep(600)\n"
        "time.sleep(600)"
    )

    def ask() -> None:
        body = {"original_model_src": REFERENCE, "custom_model_src": escaping}
        with contextlib.suppress(httpx.HTTPError):
            httpx.post(f"{judge.url}/evaluate", json=body, timeout=60, trust_env=False)

    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: judge.processes("noted"))
    everyone = judge.processes()
    assert len(everyone) >= 5
    judge.process.send_signal(signum)
    judge.process.wait(30)
    wait_until(lambda: not any(alive(pid) for pid in everyone))
    wait_until(lambda: not list(temporary.iterdir()))
    thread.join(30)


def test_client_that_hangs_up_frees_the_slot(frail_judge: LiveJudge) -> None:
    judge = frail_judge
    with pytest.raises(httpx.ReadTimeout):
        judge.client.post(
            "/evaluate", json={"original_model_src": REFERENCE, "custom_model_src": FOREVER}, timeout=1.5
        )
    wait_until(lambda: judge.client.get("/queue/status").json()["total_processing"] == 0)
    wait_until(lambda: not judge.processes("noted"))
    assert judge.evaluate(with_forward(HONEST))["correctness"] is True


def test_judge_ends_with_its_parent() -> None:
    read, write = os.pipe()
    shell = subprocess.Popen(
        [
            "sh",
            "-c",
            '"$@" & echo $!; wait',
            "sh",
            *start_command("--die-with-parent", "--announce", str(write)),
        ],
        env=judge_environment(),
        stdout=subprocess.PIPE,
        pass_fds=[write],
    )
    assert shell.stdout is not None
    with shell.stdout as out:
        pid = int(out.readline())
    assert select.select([read], [], [], 60)[0], "the judge did not start"
    os.close(read)
    os.close(write)
    shell.kill()
    shell.wait()
    wait_until(lambda: not alive(pid))


class _Zygote:
    generation = 1


def test_attempts_with_fork_server_death_do_not_count() -> None:
    fork_server = _Zygote()
    attempts = Attempts(cast(ForkClient, fork_server))
    assert attempts.another()
    fork_server.generation = 2
    assert attempts.are_left
    assert attempts.another()
    assert attempts.another()
    assert not attempts.are_left
    assert not attempts.another()


def test_attempts_end_despite_repeated_fork_server_deaths() -> None:
    fork_server = _Zygote()
    attempts = Attempts(cast(ForkClient, fork_server))
    made = 0
    while attempts.another():
        fork_server.generation += 1
        made += 1
    assert made == 4
