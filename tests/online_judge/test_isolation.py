"""What a candidate can and cannot do to its judge."""

import os
import time
from pathlib import Path

import pytest

from .live import LiveJudge, comm
from .sources import HONEST, PASSING, REFERENCE, with_forward

FORGED = (
    '{"compiled": true, "correctness": true, "runtime": 0.1, "runtime_stats": {"fast_p": 99}, "metadata": {}}'
)


def home_of(judge: LiveJudge) -> Path:
    """Return the judge's temporary folder, the last argument of its fork server."""
    (fork_server,) = judge.processes("judge-fork")
    return Path(os.fsdecode(Path(f"/proc/{fork_server}/cmdline").read_bytes().split(b"\0")[-2]))


def test_printing_does_not_harm_a_correct_kernel(judge: LiveJudge) -> None:
    noisy = PASSING.replace(
        "        h = self.linear(x)", "        print('{', x.shape)\n        h = self.linear(x)"
    )
    answer = judge.evaluate("print('importing')\n" + noisy)
    assert answer["metadata"]["status"] == "passed"


def test_a_flood_of_output_is_cut(judge: LiveJudge) -> None:
    flood = with_forward("for _ in range(2000): print('y' * 1000)\nraise ValueError('done')")
    metadata = judge.evaluate(flood)["metadata"]
    assert metadata["status"] == "launch"
    assert len(str(metadata)) < 4000


@pytest.mark.parametrize("where", ["import", "forward"])
def test_forged_verdict_on_stdout_does_not_pass(judge: LiveJudge, where: str) -> None:
    forge = f"print('''{FORGED}''', flush=True); os._exit(0)"
    source = with_forward(HONEST, top=forge) if where == "import" else with_forward(forge)
    answer = judge.evaluate(source)
    assert answer["correctness"] is False
    assert answer["metadata"]["status"] == "crash"


def test_forged_verdict_on_socket_does_not_pass(judge: LiveJudge) -> None:
    source = with_forward(
        "import json, struct, socket\n"
        "for fd in range(3, 50):\n"
        "    try:\n"
        "        verdict = {'kind': 'verdict', 'verdict': {'status': 'passed'}}\n"
        "        body = json.dumps({'result': verdict}).encode()\n"
        "        os.write(fd, struct.pack('>I', len(body)) + body)\n"
        "    except OSError:\n"
        "        pass\n"
        "return torch.zeros(8, 16)"
    )
    assert judge.evaluate(source)["correctness"] is False


def test_grandchild_that_calls_setsid_is_killed(judge: LiveJudge) -> None:
    source = with_forward(
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        open('/proc/self/comm', 'w').write('judge-escaped')\n"
        "        open('ready', 'w').close()\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "while not os.path.exists('ready'): time.sleep(0.01)\n" + HONEST
    )
    assert judge.evaluate(source)["correctness"] is True
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and comm(int(pid)) == "judge-escaped"]


def test_many_short_helpers_are_no_fork_bomb(judge: LiveJudge) -> None:
    source = with_forward("os.system('for i in $(seq 300); do (true &); done')\n" + HONEST)
    assert judge.evaluate(source)["metadata"]["status"] == "passed"


def test_fork_bomb_ends_as_a_crash(judge: LiveJudge) -> None:
    metadata = judge.evaluate(with_forward("os.system('while true; do sleep 100 & done')"))["metadata"]
    assert metadata["status"] == "crash"
    assert "too many processes" in metadata["feedback"]
    assert judge.processes("sleep") == []


def test_fork_bomb_is_answered_in_time(judge: LiveJudge) -> None:
    limit_s = 4
    begin = time.monotonic()
    bomb = with_forward("while True:\n    try: os.fork(); os.setsid()\n    except OSError: pass")
    answer = judge.evaluate(bomb, timeout=limit_s)
    assert time.monotonic() - begin < limit_s + 5
    assert answer["metadata"]["status"] in ("crash", "timeout")
    assert judge.evaluate(PASSING)["metadata"]["status"] == "passed"


def test_truncating_shared_memory_does_not_fail_the_reference(judge: LiveJudge) -> None:
    top = (
        "import threading\n"
        "def cut_off(files, main):\n"
        "    state = f'/proc/self/task/{main}/stat'\n"
        "    while open(state).read().rpartition(')')[2].split()[0] != 'S': pass\n"
        "    for file in files: os.ftruncate(file, 0)\n"
    )
    body = (
        "if not hasattr(self, 'files'):\n"
        "    links = [f'/proc/self/fd/{name}' for name in os.listdir('/proc/self/fd')]\n"
        "    links = [link for link in links if 'memfd:' in os.path.realpath(link)]\n"
        "    self.files = [os.open(link, os.O_RDWR) for link in links]\n"
        "    assert self.files\n"
        "    threading.Thread(target=cut_off, args=(self.files, os.getpid()), daemon=True).start()\n"
    )
    answer = judge.evaluate(with_forward(body + HONEST, top=top))
    assert answer["metadata"].get("status") == "passed", answer


def test_environment_is_an_allow_list(judge: LiveJudge) -> None:
    source = with_forward(
        "known = open('/proc/self/environ', 'rb').read().decode() + repr(dict(os.environ))\n"
        f"for word in ('ADAEXPLORE_JUDGE_SECRET', 'PYTEST', {os.environ['HOME']!r} + chr(39)):\n"
        "    assert word not in known, 'leaked'\n"
        "assert 'HOME' in known\n" + HONEST
    )
    metadata = judge.evaluate(source)["metadata"]
    assert metadata["status"] == "passed", metadata


def test_folders_are_private_and_gone_afterwards(judge: LiveJudge) -> None:
    source = with_forward(
        "import tempfile\n"
        "others = [os.environ['HOME'], tempfile.gettempdir(), os.environ['TRITON_CACHE_DIR']]\n"
        "assert all(other.startswith(os.getcwd()) for other in others), others\n"
        "raise ValueError('in ' + os.path.basename(os.getcwd()))"
    )
    metadata = judge.evaluate(source)["metadata"]
    assert metadata["status"] == "launch", metadata
    name = metadata["runtime_error"].rpartition(" ")[2]
    assert name
    assert not (home_of(judge) / name).exists()


def test_candidate_memory_holds_no_reference_or_secret(judge: LiveJudge) -> None:
    # the suffix is compared digit by digit, so that only the marked text itself can match; the
    # judge's secret bears the same mark, in plain text and in hexadecimal
    reference = REFERENCE + "\n# zq7x-13579\n"
    body = (
        "for line in open('/proc/self/maps'):\n"
        "    area, access = line.split()[:2]\n"
        "    low, high = (int(end, 16) for end in area.split('-'))\n"
        "    if not access.startswith('rw') or high - low > 2**28: continue\n"
        "    try:\n"
        "        with open('/proc/self/mem', 'rb', 0) as memory:\n"
        "            memory.seek(low); part = memory.read(high - low)\n"
        "    except OSError: continue\n"
        "    at = part.find(b'zq7x-')\n"
        "    while at >= 0:\n"
        "        assert [byte - 48 for byte in part[at + 5:at + 10]] != [1, 3, 5, 7, 9], 'leaked'\n"
        "        at = part.find(b'zq7x-', at + 1)\n"
        "    at = part.find(b'7a7137782d')\n"
        "    while at >= 0:\n"
        "        assert [byte - 48 for byte in part[at + 11:at + 20:2]] != [1, 3, 5, 7, 9], 'leaked'\n"
        "        at = part.find(b'7a7137782d', at + 1)\n"
    )
    metadata = judge.evaluate(with_forward(body + HONEST), reference)["metadata"]
    assert metadata["status"] == "passed", metadata


def test_candidate_process_has_no_module_of_the_reference(judge: LiveJudge) -> None:
    body = "assert not [m for m in sys.modules.values() if 'get_init_inputs' in vars(m)]\n"
    assert judge.evaluate(with_forward(body + HONEST))["metadata"]["status"] == "passed"


def test_judge_is_out_of_reach_of_a_candidate(judge: LiveJudge, tmp_path: Path) -> None:
    secret = tmp_path / "reference.py"
    secret.write_text(REFERENCE)
    repository = Path(__file__).parents[2]
    evaluators = judge.processes("judge-evaluator")
    others = [judge.process.pid, *judge.processes("judge-fork"), *evaluators]
    folders = [os.readlink(f"/proc/{pid}/cwd") for pid in evaluators]
    assert all(Path(folder).parent == home_of(judge) and Path(folder).is_dir() for folder in folders)
    body = (
        "import signal, socket\n"
        "def refused(work, *arguments):\n"
        "    try: work(*arguments)\n"
        "    except OSError: return\n"
        "    raise AssertionError(f'permitted: {arguments}')\n"
        f"refused(socket.socket().connect, ('127.0.0.1', {judge.client.base_url.port}))\n"
        f"refused(open, {str(secret)!r})\n"
        f"refused(os.listdir, {str(repository / 'datasets')!r})\n"
        f"for folder in {folders}: refused(os.listdir, folder)\n"
        f"refused(open, {str(tmp_path / 'x')!r}, 'w')\n"
        f"for pid in {others}:\n"
        "    refused(open, f'/proc/{pid}/environ', 'rb')\n"
        "    refused(open, f'/proc/{pid}/mem', 'rb')\n"
        "    refused(os.kill, pid, signal.SIGTERM)\n"
    )
    metadata = judge.evaluate(with_forward(body + HONEST))["metadata"]
    assert metadata["status"] == "passed", metadata
