"""Clients with tokens of their own: each sees its jobs alone, and has its own limits."""

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from online_judge.common.tokens import read_clients

from .live import LiveJudge, judge_environment, running_judge, start_command, wait_until
from .sources import PASSING
from .test_tokens import hash_of
from .test_v2_access import door_code
from .test_v2_jobs import FOREVER, SLOW, cancel, judged, look, submit

MAIN = "the-one-token"


def file_of(folder: Path, *lines: str) -> str:
    path = folder / "tokens"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    """Start a judge with clients a, b (few waiting jobs), slow (few requests) and the one without a name."""
    folder = tmp_path_factory.mktemp("shared")
    tokens = file_of(
        folder, f"a {hash_of('a')}", f"b {hash_of('b')} queued=2", f"slow {hash_of('slow')} per_minute=3"
    )
    with running_judge(folder, JUDGE_TOKENS=tokens, ADAEXPLORE_JUDGE_TOKEN=MAIN) as live:
        yield live


AsClient = Callable[..., LiveJudge]


@pytest.fixture
def as_client() -> Iterator[AsClient]:
    """Ask the same judge with a token and perhaps more headers."""

    def ask(judge: LiveJudge, token: str, **headers: str) -> LiveJudge:
        client = LiveJudge(judge.process, int(judge.url.rpartition(":")[2]))
        client.client.headers.update({"Authorization": f"Bearer {token}"} | headers)
        stack.callback(client.close)
        return client

    with contextlib.ExitStack() as stack:
        yield ask


def test_only_its_owner_sees_and_cancels_a_job(shared: LiveJudge, as_client: AsClient) -> None:
    owner = as_client(shared, "a")
    job = submit(owner, FOREVER).json()["id"]
    for token in ("b", MAIN):
        other = as_client(shared, token).client
        assert other.get(f"/v2/jobs/{job}", params={"wait": 1}).status_code == 404
        assert other.delete(f"/v2/jobs/{job}").status_code == 404
    assert look(owner, job, wait=0)["state"] in ("queued", "running")
    assert cancel(owner, job)["state"] == "cancelled"


def test_idempotency_keys_are_those_of_a_client(shared: LiveJudge, as_client: AsClient) -> None:
    a, b, one = (as_client(shared, token) for token in ("a", "b", MAIN))
    jobs = [submit(client, PASSING, key="same").json()["id"] for client in (a, b, one)]
    assert len(set(jobs)) == 3
    assert submit(a, PASSING, key="same").json()["id"] == jobs[0]
    assert submit(a, SLOW, key="same").status_code == 409
    assert look(b, jobs[1])["verdict"] == look(a, jobs[0])["verdict"]


def test_unknown_tokens_are_refused(shared: LiveJudge) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {hash_of('a')}"}):
        assert shared.client.get("/health", headers=headers).status_code == 401
    assert shared.client.get("/livez").status_code == 200


def test_rate_over_the_limit_is_429(shared: LiveJudge, as_client: AsClient) -> None:
    slow = as_client(shared, "slow").client
    answers = [slow.get("/queue/status") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60
    assert as_client(shared, "a").client.get("/queue/status").status_code == 200


def test_waiting_jobs_over_the_limit_are_429(shared: LiveJudge, as_client: AsClient) -> None:
    a, b = as_client(shared, "a"), as_client(shared, "b")
    blocker = submit(a, FOREVER).json()["id"]
    wait_until(lambda: shared.processes("noted"))
    one, two = (submit(b, SLOW, force=force).json()["id"] for force in (False, True))
    for text in (SLOW, SLOW + "# more\n"):  # one would join a job, one would wait
        refused = submit(b, text)
        assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
    v1 = b.post("/evaluate", {"custom_model_src": PASSING})
    assert v1.status_code == 503
    other = submit(a, SLOW).json()["id"]
    cancel(b, one)
    assert submit(b, SLOW, key="freed").status_code == 202
    for job in (blocker, other):
        cancel(a, job)
    assert look(b, two)["state"] == "done"


def test_names_in_the_header_make_no_turns(shared: LiveJudge, as_client: AsClient) -> None:
    a, b = as_client(shared, "a"), as_client(shared, "b")
    blocker = submit(a, FOREVER).json()["id"]
    wait_until(lambda: shared.processes("noted"))
    jobs = [
        submit(as_client(shared, "a", **{"X-Client": str(number)}), PASSING, force=True).json()
        for number in range(3)
    ]
    fair = submit(b, PASSING, force=True).json()
    assert fair["position"] == 1  # behind the first of a, before the rest of a
    for job in (blocker, *(each["id"] for each in jobs)):
        cancel(a, job)
    assert look(b, fair["id"])["state"] == "done"


def test_owner_and_key_outlive_the_judge(tmp_path: Path, as_client: AsClient) -> None:
    tokens = file_of(tmp_path, f"a {hash_of('a')}", f"b {hash_of('b')}")
    state = str(tmp_path / "state.sqlite")
    with running_judge(tmp_path, JUDGE_TOKENS=tokens, JUDGE_STATE=state) as judge:
        a = as_client(judge, "a")
        done = judged(a, PASSING, key="k")
        running = submit(a, FOREVER).json()["id"]
        assert look(a, running, wait=0)["state"] in ("queued", "running")
    with running_judge(tmp_path, JUDGE_TOKENS=tokens, JUDGE_STATE=state) as judge:
        a, b = as_client(judge, "a"), as_client(judge, "b")
        assert submit(a, PASSING, key="k").json()["id"] == done["id"]
        for job in (done["id"], running):
            assert b.client.get(f"/v2/jobs/{job}").status_code == 404
        assert submit(b, PASSING, key="k").json()["id"] != done["id"]
        assert cancel(a, running)["state"] == "cancelled"


def test_malformed_tokens_file_exits_with_one_line(tmp_path: Path) -> None:
    path = file_of(tmp_path, f"a {hash_of('a')}", "b plain-text-token")
    environment = judge_environment(JUDGE_TOKENS=path)
    done = subprocess.run(start_command(), env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert f"{path}:2: " in done.stderr
    assert "plain-text-token" not in done.stderr


def test_tokens_file_lets_a_judge_listen_elsewhere(tmp_path: Path) -> None:
    clients = read_clients(Path(file_of(tmp_path, f"a {hash_of('a')}")))
    host, from_elsewhere = {"host": "judge.example"}, ("10.0.0.1", 1)
    bearer = {"authorization": "Bearer a"}
    assert door_code("/health", from_elsewhere, host | bearer, None, clients) == 200
    assert door_code("/health", from_elsewhere, host, None, clients) == 401
