"""What a candidate can and cannot do to its judge."""

import os
from pathlib import Path

import pytest

from .live import LiveJudge, alive
from .sources import HONEST, PASSING, REFERENCE, with_forward

FORGED = (
    '{"compiled": true, "correctness": true, "runtime": 0.1, "runtime_stats": {"fast_p": 99}, "metadata": {}}'
)


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


def test_words_on_the_players_own_socket_are_no_verdict(judge: LiveJudge) -> None:
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


def test_grandchild_that_calls_setsid_is_killed(judge: LiveJudge, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    source = with_forward(
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        f"        open({str(note)!r}, 'w').write(str(os.getpid()))\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        f"while not os.path.exists({str(note)!r}) or not open({str(note)!r}).read(): time.sleep(0.01)\n"
        + HONEST
    )
    assert judge.evaluate(source)["correctness"] is True
    assert not alive(int(note.read_text()))
    assert judge.processes("judge-player") == []


def test_many_short_helpers_are_no_fork_bomb(judge: LiveJudge) -> None:
    source = with_forward("os.system('for i in $(seq 300); do (true &); done')\n" + HONEST)
    assert judge.evaluate(source)["metadata"]["status"] == "passed"


def test_fork_bomb_ends_as_a_crash(judge: LiveJudge) -> None:
    metadata = judge.evaluate(with_forward("os.system('while true; do sleep 100 & done')"))["metadata"]
    assert metadata["status"] == "crash"
    assert "too many processes" in metadata["feedback"]
    assert judge.processes("judge-player") == []


def test_environment_is_an_allow_list(judge: LiveJudge, tmp_path: Path) -> None:
    note = tmp_path / "environment"
    source = with_forward(
        "known = open('/proc/self/environ', 'rb').read() + repr(dict(os.environ)).encode()\n"
        f"open({str(note)!r}, 'wb').write(known)\n" + HONEST
    )
    assert judge.evaluate(source)["correctness"] is True
    text = note.read_text()
    assert "ADAEXPLORE_JUDGE_SECRET" not in text
    assert "PYTEST" not in text
    assert "HOME" in text
    assert os.environ["HOME"] + "'" not in text


def test_folders_are_private_and_gone_afterwards(judge: LiveJudge, tmp_path: Path) -> None:
    note = tmp_path / "folders"
    source = with_forward(
        "import tempfile\n"
        f"open({str(note)!r}, 'w').write('\\n'.join([os.getcwd(), os.environ['HOME'], tempfile.gettempdir(), "
        "os.environ['TRITON_CACHE_DIR']]))\n" + HONEST
    )
    assert judge.evaluate(source)["correctness"] is True
    folder, *others = note.read_text().splitlines()
    assert all(other.startswith(folder) for other in others)
    assert not Path(folder).exists()


def test_memory_of_the_player_holds_neither_reference_nor_secret(judge: LiveJudge) -> None:
    # the suffix is compared digit by digit, so that only the marked text itself can match; the
    # judge's secret bears the same mark, in plain text and in hexadecimal
    reference = REFERENCE + "\n# zq7x-13579\n"
    body = (
        "for line in open('/proc/self/maps'):\n"
        "    area, access = line.split()[:2]\n"
        "    low, high = (int(end, 16) for end in area.split('-'))\n"
        "    if not access.startswith('rw') or high - low > 2**28: continue\n"
        "    with open('/proc/self/mem', 'rb', 0) as memory:\n"
        "        try:\n"
        "            memory.seek(low); part = memory.read(high - low)\n"
        "        except OSError: continue\n"
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


def test_player_has_no_module_of_the_reference(judge: LiveJudge) -> None:
    body = "assert not [m for m in sys.modules.values() if 'get_init_inputs' in vars(m)]\n"
    assert judge.evaluate(with_forward(body + HONEST))["metadata"]["status"] == "passed"
