"""The layers around a candidate, without a judge: what stands, what it keeps out, what is left afterwards."""

import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import JudgeError
from online_judge.processes.fork_client import ForkClient
from online_judge.sandbox import linux, process_spec, read_back

from .confined import Outcome, confined
from .live import comm, wait_until

REPOSITORY = Path(__file__).parents[2]
SYSTEM_CALL = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)

def call(*arguments):
    ctypes.set_errno(0)
    libc.syscall(*arguments)
    return errno.errorcode.get(ctypes.get_errno(), "allowed")
"""
BARE = ["network", "pids", "ipc", "mounts", "uid"]
JUDGES: dict[str, dict[str, Any]] = {"any": {}, "no namespaces": {"without": BARE}}
if os.getuid() == 0:
    JUDGES["plain user"] = {"user": 12345}

OUTSIDE = """
import os, socket

def attempt(work):
    try:
        return repr(work())
    except OSError:
        return "refused"
"""


def attempt(expression: str, **wish: Any) -> Outcome:
    """Return what an expression gives in the sandbox, or ``refused``."""
    return confined(f"{OUTSIDE}\nresult = attempt(lambda: {expression})", **wish)


def attempts(expressions: list[str], **wish: Any) -> Outcome:
    """Try all expressions in one sandbox; the result holds what each gives."""
    return confined(f"{OUTSIDE}\nresult = {{e: attempt(lambda: eval(e)) for e in {expressions!r}}}", **wish)


def need(outcome: Outcome, *layers: str) -> None:
    """Skip where the machine does not permit these layers."""
    missing = [layer for layer in layers if outcome.sandbox[layer] in (None, False)]
    if missing:
        pytest.skip(f"not in force on this machine: {', '.join(missing)}")


@pytest.mark.parametrize(
    ("judge", "level"), [("any", "full"), ("no namespaces", "none"), ("plain user", "namespaces")]
)
def test_sandbox_level_is_reported(judge: str, level: str) -> None:
    if judge not in JUDGES:
        pytest.skip("the tests run as a plain user")
    outcome = attempt("1", **JUDGES[judge])
    if judge == "any":
        need(outcome, *set(outcome.sandbox) - {"level"})
    if judge == "plain user":
        need(outcome, "pids", "network")
    assert outcome.sandbox["level"] == level


def test_weaker_sandbox_than_required_is_refused() -> None:
    weak = attempt("1", **JUDGES["no namespaces"]).sandbox
    forks = ForkClient("namespaces")
    with pytest.raises(JudgeError, match=r"_REQUIRE_SANDBOX is namespaces.*candidate is none.*no process"):
        forks.note_sandbox(weak, "candidate")
    with pytest.raises(JudgeError, match="of the evaluator is none"):
        forks.note_sandbox(weak, "evaluator")
    assert forks.in_force is None
    ForkClient("none").note_sandbox(weak, "candidate")


@pytest.mark.parametrize("judge", JUDGES)
def test_files_of_others_are_out_of_reach(judge: str, tmp_path: Path) -> None:
    secret = tmp_path / "reference.py"
    secret.write_text("class Model: pass")
    secret.chmod(0o644)
    paths = [
        str(secret),
        str(REPOSITORY / "pyproject.toml"),
        str(REPOSITORY / "online_judge/evaluator/process.py"),
    ]
    folders = [str(tmp_path), str(REPOSITORY / "datasets")]
    expressions = [f"open({path!r}).read()" for path in paths] + [f"os.listdir({each!r})" for each in folders]
    outcome = attempts(expressions, **JUDGES[judge])
    need(outcome, "filesystem")
    assert outcome.result == dict.fromkeys(expressions, "refused")


@pytest.mark.parametrize("judge", JUDGES)
def test_nothing_is_written_outside_its_folder(judge: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    targets = [str(tmp_path / "x"), "/usr/x", "/etc/x", "/x", str(REPOSITORY / "x")]
    expressions = [f"open({target!r}, 'w')" for target in targets]
    outcome = attempts(expressions, **JUDGES[judge])
    need(outcome, "filesystem")
    assert outcome.result == dict.fromkeys(expressions, "refused")
    assert attempt("[open(n + '/x', 'w').write('1') for n in ('.', 'tmp', 'home')]").result == "[1, 1, 1]"


@pytest.mark.parametrize("judge", JUDGES)
def test_no_tcp_connection_to_this_machine(judge: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        outcome = attempt(f"socket.socket().connect(('127.0.0.1', {port}))", **JUDGES[judge])
    need(outcome, "network")
    assert outcome.result == "refused"


@pytest.mark.parametrize("judge", JUDGES)
def test_other_processes_are_out_of_reach(judge: str) -> None:
    pid = os.getpid()
    expressions = [f"os.kill({pid}, 0)", f"open('/proc/{pid}/environ', 'rb').read()", "os.kill(1, 9)"]
    outcome = attempts(expressions, **JUDGES[judge])
    need(outcome, "landlock")
    assert outcome.result == dict.fromkeys(expressions, "refused")


def test_its_supervisor_cannot_be_signalled_or_inspected() -> None:
    without = ["pids", "mounts", "landlock"]
    expressions = [
        "open(f'/proc/{os.getppid()}/environ', 'rb').read()",
        "os.readlink(f'/proc/{os.getppid()}/fd/0')",
    ]
    outcome = attempts(expressions, without=without)
    assert outcome.result == dict.fromkeys(expressions, "refused")


def test_other_processes_are_invisible() -> None:
    outcome = confined("import os\nresult = [pid for pid in os.listdir('/proc') if pid.isdigit()]")
    need(outcome, "hidden", "pids")
    assert len(outcome.result) == 1


def test_candidate_has_only_stdio_and_socket_descriptors() -> None:
    outcome = confined("import os\nresult = [os.readlink(f'/proc/self/fd/{n}') for n in range(3, 200) "
                       "if os.path.lexists(f'/proc/self/fd/{n}')]")  # fmt: skip
    assert [target.partition(":")[0] for target in outcome.result] == ["socket"]


def test_report_agrees_with_what_the_candidate_process_sees() -> None:
    outcome = confined(
        "import os, resource\n"
        "status = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines())\n"
        "result = {'uid': os.getuid(), 'no_new_privileges': '1' in status['NoNewPrivs'],\n"
        "  'no_capabilities': int(status['CapPrm'], 16) == 0,\n"
        "  'file_bytes': resource.getrlimit(resource.RLIMIT_FSIZE)[0],\n"
        "  'open_files': resource.getrlimit(resource.RLIMIT_NOFILE)[0],\n"
        "  'network': open('/proc/net/dev').read().count(':') == 1}"
    )
    need(outcome, "network", "uid")
    assert {key: outcome.sandbox[key] for key in outcome.result} == outcome.result
    assert outcome.sandbox["uid"] != os.getuid()
    assert outcome.sandbox["filesystem"] == "mount"


def test_walls_left_out_are_not_reported_as_standing() -> None:
    without = [*BARE, "landlock", "cgroup", "seccomp"]
    facts = confined("result = 1", without=without, limits={"address_bytes": None}).sandbox
    for key in ("network", "pids", "hidden", "ipc", "filesystem", "landlock", "cgroup", "seccomp"):
        assert facts[key] is False, key
    assert facts["uid"] is facts["memory_bytes"] is facts["disk_bytes"] is None
    words = read_back.weaknesses(facts)
    assert "the file system is open" in words
    assert "no memory limit" in words
    assert "no system call filter" in words
    assert "no file size limit" not in words


def test_two_candidate_processes_have_different_users() -> None:
    first, second = confined("result = 1"), confined("result = 1")
    need(first, "uid")
    assert first.sandbox["uid"] != second.sandbox["uid"]


def test_the_candidate_is_found_in_its_folder() -> None:
    assert confined("result = open('candidate.py').read()").result == "# handed over"


def test_full_disk_fails_only_the_candidate_process() -> None:
    body = (
        "import errno\ntry: open('x', 'wb').write(bytes(2**22))\n"
        "except OSError as error: result = error.errno == errno.ENOSPC"
    )
    outcome = confined(body, limits={"disk_bytes": 2**21})
    need(outcome, "disk_bytes")
    assert outcome.result is True


def test_too_large_a_file_is_refused() -> None:
    body = "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + OUTSIDE
    body += "result = attempt(lambda: [os.write(os.open('x', 65), bytes(2**16)) for _ in range(2)])\n"
    body += "f = open('y', 'wb', 0); f.write(bytes(2**16)); result = attempt(lambda: f.write(b'1'))"
    assert confined(body, limits={"file_bytes": 2**16}).result == "refused"


def test_memory_is_limited_for_all_processes_together() -> None:
    outcome = confined(
        "import os, time\nos.fork(), os.fork()\nheld = [b'x' * 2**22 for _ in range(64)]\ntime.sleep(60)",
        limits={"memory_bytes": 2**27, "address_bytes": None},
        patience_s=3,
    )
    if outcome.sandbox["memory_of"] != "tree":
        pytest.skip("no memory cgroup on this machine")
    assert outcome.sandbox["memory_bytes"] == 2**27
    assert outcome.report["out_of_memory"] is True
    assert outcome.report["how"] == "because it ran out of memory"


def test_number_of_processes_is_limited() -> None:
    body = (
        f"{OUTSIDE}\nimport time\ndef more():\n  for _ in range(64):\n    if os.fork() == 0: time.sleep(60)\n"
        "result = attempt(more)"
    )
    outcome = confined(body, limits={"processes": 24})
    need(outcome, "processes")
    assert outcome.result == "refused"


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("victim", ["judge-candidate", "judge-supervise", "judge-init"])
def test_nothing_is_left_whoever_is_killed(judge: str, victim: str) -> None:
    name = f"left-{os.urandom(4).hex()}"
    body = (
        "import os, time\n"
        f"open('/proc/self/comm', 'w').write({name!r}) if os.fork() == 0 else time.sleep(0.1)\n"
        "if os.getpid() == os.getsid(0): channel.send_json({'result': 1})\n"
        "time.sleep(60)"
    )
    outcome = confined(body, kill=victim, **JUDGES[judge])
    assert outcome.result == 1
    if victim == "judge-candidate":
        assert outcome.report["how"] == "by signal 9"
    wait_until(lambda: name not in [comm(int(pid)) for pid in os.listdir("/proc") if pid.isdigit()])


@pytest.mark.parametrize("judge", JUDGES)
def test_no_descendant_outlives_the_end(judge: str) -> None:
    name = f"left-{os.urandom(4).hex()}"
    body = (
        f"import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n"
        f"    open('/proc/self/comm', 'w').write({name!r}); open('ready', 'w'); time.sleep(60)\n"
        "  os._exit(0)\n"
        "while not os.path.exists('ready'): time.sleep(0.01)\nresult = 1"
    )
    assert confined(body, **JUDGES[judge]).result == 1
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and comm(int(pid)) == name]


def test_control_group_is_gone_afterwards() -> None:
    outcome = confined("result = 1")
    need(outcome, "cgroup")
    names = {name for _, folders, _ in os.walk("/sys/fs/cgroup") for name in folders}
    assert f"adaexplore-candidate-{outcome.supervisor}" not in names


def test_closed_descriptors_do_not_end_the_supervisor() -> None:
    outcome = confined("import os, time\nos.closerange(0, 64)\ntime.sleep(60)", patience_s=1)
    assert outcome.result is None
    assert outcome.report["died"] is False


def test_process_dies_with_its_fork_server() -> None:
    body = "import time\nchannel.send_json({'result': 1})\ntime.sleep(60)"
    outcome = confined(body, kill="judge-supervise", signum=signal.SIGTERM)  # as the kernel does then
    assert outcome.report["died"] is True
    assert outcome.report["how"] == "together with its supervisor, by signal 15"


def test_exit_before_sandbox_setup_is_not_candidates_fault() -> None:
    outcome = confined("result = 1", limits={"open_files": -7})
    assert outcome.sandbox is None


def test_build_folder_is_writable_and_keeps_owner(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    body = "import os\nresult = open(os.environ['TORCH_EXTENSIONS_DIR'] + '/old').read()\n"
    body += "open(os.environ['TORCH_EXTENSIONS_DIR'] + '/new', 'w').write('new')"
    outcome = confined(body, build_dir=str(tmp_path))
    need(outcome, "filesystem")
    assert outcome.result == "old"
    assert (tmp_path / "new").read_text() == "new"
    assert (tmp_path / "new").stat().st_uid == os.getuid()


def test_assigned_job_sets_precision_and_writable_build_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "private")
    monkeypatch.delenv("TRITON_F32_DEFAULT", raising=False)
    process_spec.assign(tf32="paper", build_dir=str(tmp_path / "none"))
    assert os.environ["TORCH_EXTENSIONS_DIR"] == "private"
    assert "TRITON_F32_DEFAULT" not in os.environ
    process_spec.assign(tf32="off", build_dir=str(tmp_path))
    assert os.environ["TORCH_EXTENSIONS_DIR"] == str(tmp_path)
    assert os.environ["TRITON_F32_DEFAULT"] == "ieee"
    monkeypatch.delenv("TRITON_F32_DEFAULT")


def system_calls(*calls: str, **wish: Any) -> Outcome:
    """Return ``allowed`` or the error's name for each system call, given by its arguments."""
    return confined(f"{SYSTEM_CALL}\nresult = [{', '.join(f'call({each})' for each in calls)}]", **wish)


@pytest.mark.parametrize("judge", JUDGES)
def test_keys_of_the_judge_cannot_be_read(judge: str) -> None:
    search, read = f"{linux.number(linux.KEYCTL)}, 10, -3", f"{linux.number(linux.KEYCTL)}, 11"
    name = f"judge-{os.urandom(4).hex()}"
    body = (
        f"{SYSTEM_CALL}\nkey = libc.syscall({search}, b'user', {name.encode()!r}, 0)\n"
        f"text = ctypes.create_string_buffer(6)\nlibc.syscall({read}, key, text, 6)\n"
        "result = [key > 0, text.value.decode()]"
    )
    wish = JUDGES[judge] | {"key": name}
    without_filter = wish | {"without": [*wish.get("without", []), "seccomp"]}
    for each in (wish, without_filter):
        assert confined(body, **each).result == [False, ""]


@pytest.mark.parametrize("judge", [name for name in JUDGES if name != "no namespaces"])
def test_keys_are_not_listed(judge: str) -> None:
    outcome = attempt("open('/proc/keys').read()", key="planted", **JUDGES[judge])
    need(outcome, "hidden")
    assert outcome.result in ("''", "refused")


@pytest.mark.parametrize("judge", JUDGES)
def test_dangerous_system_calls_are_refused(judge: str) -> None:
    keyctl = linux.number(linux.KEYCTL)
    unshare, setns = linux.number((272, 97)), linux.number((308, 268))
    calls = {
        f"{keyctl}, 0, -4, 1": "EPERM",
        f"{keyctl - 2}, b'user', b'left', b'x', 1, -4": "EPERM",
        "425, 8, bytes(120)": "EPERM",  # io_uring_setup
        f"{linux.number((321, 280))}, 0, bytes(128), 128": "EPERM",  # bpf
        f"{linux.number((323, 282))}, 0": "EPERM",  # userfaultfd
        f"{linux.number((101, 117))}, 0, 0, 0, 0": "EPERM",  # ptrace
        f"{linux.number((310, 270))}, os.getpid(), 0, 0, 0, 0, 0": "EPERM",  # process_vm_readv
        f"{unshare}, 0x10000000": "EPERM",
        f"{setns}, 0, 0": "EPERM",
        f"{linux.number((56, 220))}, 0x10000000 | 17, 0, 0, 0, 0": "EPERM",  # clone into a user namespace
        "435, 0, 0": "ENOSYS",  # clone3
        f"{linux.number((298, 241))}, 0, 0, 0, 0, 0": "EPERM",  # perf_event_open
    }
    outcome = system_calls(*calls, **JUDGES[judge])
    need(outcome, "seccomp")
    assert dict(zip(calls, outcome.result, strict=True)) == calls


def test_only_ordinary_sockets_can_be_made() -> None:
    sockets = linux.number((41, 198))
    made = [(1, 1), (1, 5), (2, 1), (2, 2 | 0o2000000), (10, 1), (16, 3)]
    refused = [(2, 3), (10, 3), (17, 3), (17, 2), (38, 5), (40, 1), (2, 10)]  # raw, packets, crypto, vsock
    outcome = system_calls(*(f"{sockets}, {family}, {kind}, 0" for family, kind in made + refused))
    need(outcome, "seccomp")
    assert outcome.result == ["allowed"] * len(made) + ["EPERM"] * len(refused)


def test_threads_forks_and_compilers_still_work() -> None:
    body = (
        "import os, subprocess, sys, threading\n"
        "thread = threading.Thread(target=lambda: None); thread.start(); thread.join()\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(3)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "open('x.c', 'w').write('int main(void) { return 4; }')\n"
        "built = subprocess.run(['gcc', 'x.c', '-o', 'x']).returncode\n"
        "fd = os.memfd_create('x'); os.ftruncate(fd, 8)\n"
        "result = [code, built, subprocess.run(['./x']).returncode]"
    )
    outcome = confined(body)
    need(outcome, "seccomp")
    assert outcome.result == [3, 0, 4]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86-64 alone has a second table of system calls")
def test_filter_covers_the_second_table_of_calls() -> None:
    outcome = system_calls(f"0x40000000 | {linux.number(linux.KEYCTL)}, 0, -4, 1")
    need(outcome, "seccomp")
    assert outcome.result == ["ENOSYS"]


def test_candidate_has_the_ordinary_priority() -> None:
    body = "import os\nresult = [os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)]"
    assert confined(body).result == [os.SCHED_OTHER, os.getpriority(os.PRIO_PROCESS, 0)]


FORK_BOMBS = {
    "forks": "while True:\n  try: os.fork()\n  except OSError: pass",
    "sessions": "while True:\n  try: os.fork(); os.setsid()\n  except OSError: pass",
    "spins": "for _ in range(200):\n  if os.fork() == 0: os.setsid(); break\nwhile True: pass",
}


@pytest.mark.parametrize("bomb", FORK_BOMBS)
def test_fork_bomb_is_ended_at_once(bomb: str) -> None:
    begin = time.monotonic()
    outcome = confined(f"import os\n{FORK_BOMBS[bomb]}", patience_s=3)
    need(outcome, "pids", "cgroup")
    assert time.monotonic() - begin < 8
    assert outcome.result is None
