"""The measured judge: start it, send it jobs over HTTP, and describe its machine."""

import contextlib
import os
import platform
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx

from adaexplore.core.errors import JudgeUnavailableError, UsageError
from adaexplore.judge_client.embedded import judge_process
from adaexplore.records.provenance import provenance
from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.records import GIVEN_UP, Judged, Session

ROOT = Path(__file__).parents[2]
TIMED_RUNS = 100
TRIALS = 5
JOB_TIMEOUT_S = 300
WAITING_S = 60
"""Seconds that a unit may wait for others, in addition to its own time."""
_POLL_S = 30
_HTTP_S = 120.0
_OURS = (
    *("JUDGE_", "GPU_ALLOCATION", "AVAILABLE_GPUS", "MAX_", "RUNTIME_TIMEOUT", "ADAEXPLORE_", "RESULT_CACHE"),
    *("ARMED_PLAYERS", "COMPILE_", "CPU_MAX_", "BUILD_DIR", "TIMING_ROOT"),
)
"""Prefixes of the judge's environment variables, which a measured judge does not inherit."""
_TEXT_CHARS = 300


@contextlib.contextmanager
def running_judge(
    device: str, slots: int, log: Path, tree: Path | None = None, /, **environment: str
) -> Iterator[str]:
    """Start ``python -m online_judge`` on a free port, yield its address when it is ready, stop it.

    It evaluates ``slots`` candidates at a time and writes JSON lines to ``log``. With ``tree`` it is the
    judge of that checkout, which is the working directory within the block.

    Raises:
        JudgeUnavailableError: it does not start.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_OURS)}
    kept["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str((tree or ROOT).resolve()), kept.get("PYTHONPATH", "")])
    )
    kept |= {"JUDGE_DEVICE": device, "MAX_CONCURRENT_EVALS": str(slots), "JUDGE_STATE": ""}
    log.parent.mkdir(parents=True, exist_ok=True)
    kept |= {"LOG_FORMAT": "json"} | environment
    folder = contextlib.nullcontext() if tree is None else contextlib.chdir(tree)
    with log.open("wb") as out, folder, judge_process(kept, out) as judge:
        address = f"http://127.0.0.1:{judge.port}"
        answer = httpx.get(f"{address}/readyz", timeout=_HTTP_S, trust_env=False)
        if not answer.is_success:
            raise JudgeUnavailableError(f"the judge is not ready: {answer.text[:_TEXT_CHARS]} (see {log})")
        yield address


def request_of(candidate: Candidate, limit_s: int = JOB_TIMEOUT_S) -> dict[str, Any]:
    """Return the body that the search sends for a candidate, at tier ``legacy``."""
    return {
        "original_model_src": candidate.reference,
        "custom_model_src": candidate.source,
        "seed_num": 42,
        "num_correct_trials": TRIALS,
        "num_perf_trials": TIMED_RUNS,
        "measure_performance": True,
        "backend": "triton",
        "tier": "legacy",
        "timeout": limit_s,
        **candidate.fields,
    }


class Client(httpx.Client):
    """Submits jobs of v2 and waits for their ends; threads may share it."""

    def __init__(self, address: str) -> None:
        limits = httpx.Limits(max_connections=64)
        super().__init__(base_url=address, timeout=_HTTP_S, limits=limits, trust_env=False)

    def judge(self, candidate: Candidate, unit: str, limit_s: int = JOB_TIMEOUT_S) -> Judged:
        """Judge a candidate anew; if the judge fails, the record has the status ``error``.

        ``limit_s`` limits the own time of the reference and of the candidate, each. A job is cancelled after
        twice that and a minute for waiting.

        Raises:
            JudgeUnavailableError: the judge has exited; nothing was submitted.
        """
        begin = time.monotonic()
        body = {"kind": "candidate", "request": request_of(candidate, limit_s), "force": True}
        try:
            answer = self.finished(body, 2 * limit_s + WAITING_S)
        except (httpx.HTTPError, ValueError, KeyError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        return judged(candidate, unit, answer, time.monotonic() - begin)

    def finished(self, body: dict[str, Any], limit_s: float) -> dict[str, Any]:
        """Submit a job and return the judge's answer once it has ended; cancel a slower job.

        Raises:
            JudgeUnavailableError: the judge has exited; nothing was submitted.
            httpx.HTTPError: the judge refuses, or exits while the job runs.
        """
        job = self._submit(body)
        deadline = time.monotonic() + limit_s
        while (left_s := deadline - time.monotonic()) > 0:
            response = self.get(f"/v2/jobs/{job}", params={"wait": min(_POLL_S, left_s)})
            answer: dict[str, Any] = response.raise_for_status().json()
            if answer["state"] not in ("queued", "running"):
                return answer
        with contextlib.suppress(httpx.HTTPError):
            self.delete(f"/v2/jobs/{job}")
        return {"error": f"{GIVEN_UP}: no verdict after {limit_s:.0f} s"}

    def _submit(self, body: dict[str, Any]) -> str:
        while True:
            try:
                response = self.post("/v2/jobs", json=body)
            except httpx.ConnectError as error:
                raise JudgeUnavailableError(
                    "the judge has exited; see its log in --out, then give the same command again"
                ) from error
            if response.status_code != 429:
                return str(response.raise_for_status().json()["id"])
            time.sleep(float(response.headers.get("Retry-After", "1")))


def judged(candidate: Candidate, unit: str, answer: dict[str, Any], seconds: float) -> Judged:
    """Return the record of a job's answer."""
    verdict = answer.get("verdict") or {}
    meta = verdict.get("metadata") or {}
    stats = verdict.get("runtime_stats") or {}
    slot = stats.get("slot") or meta.get("slot") or {}
    evidence = meta.get("integrity_evidence") or []
    interpreted = stats.get("timing") == "interpreter"
    return Judged(
        unit=unit,
        candidate=candidate.id,
        problem=candidate.problem,
        status=str(verdict.get("status", "error")),
        error=None if verdict else str(answer.get("error") or f"job {answer.get('state')}")[:_TEXT_CHARS],
        tier=meta.get("tier"),
        flags=tuple(meta.get("integrity") or ()),
        rejects=tuple(each["id"] for each in evidence if each.get("severity") == "reject"),
        problem_flags=tuple(meta.get("problem_flags") or ()),
        evidence=tuple(f"{each['id']}: {each.get('evidence', '')}" for each in evidence),
        feedback=str(meta.get("feedback", ""))[:_TEXT_CHARS],
        seconds=seconds,
        speedup=None if interpreted else stats.get("fast_p"),
        gpu_ms=None if interpreted else stats.get("gpu_ms", stats.get("median", stats.get("mean"))),
        baseline_ms=stats.get("baseline_time"),
        slot_held_s=slot.get("held_s"),
        slot_gpu_s=slot.get("gpu_s"),
    )


def session(device: str, command: Sequence[str], revision: str | None) -> Session:
    """Return date, command, revision, hardware and versions of a measurement that begins now.

    Raises:
        UsageError: ``device`` is ``cuda`` and there is no GPU.
    """
    hardware, driver = _gpu() if device == "cuda" else (_cpu(), None)
    return Session(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join(["python", "tool_scripts/bench_judge.py", *command]),
        revision=revision or git_revision(),
        hardware=hardware,
        driver=driver,
        machine=f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} CPU cores",
        versions={"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("torch", "triton")},
    )


def git_revision() -> str:
    """Return the revision of the sources; ``unknown`` if git does not know it."""
    return str(provenance(0, {})["git_revision"] or "unknown")


def _gpu() -> tuple[str, str]:
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError("--device cuda, but nvidia-smi shows no GPU; use --device cpu") from error
    name, _, driver = done.stdout.partition("\n")[0].partition(",")
    return name.strip(), driver.strip()


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
