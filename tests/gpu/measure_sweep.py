"""What a sweep of tunables gains and costs on a GPU: ``python -m tests.gpu.measure_sweep --out FILE``.

Each kernel is judged as declared, then with a sweep, each without a known verdict; then it is profiled.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.gpu.tunable_kernels import CASES, Case
from tests.online_judge.live import LiveJudge, running_judge


def job(judge: LiveJudge, case: Case, kind: str = "candidate", **fields: Any) -> dict[str, Any]:
    """How a job ends, and the seconds that it took on the client's clock."""
    request = {
        "original_model_src": case.reference,
        "custom_model_src": case.candidate,
        "backend": "triton",
        "dtype_str": case.dtype,
        "tf32": "off",
        "measure_performance": True,
        "num_correct_trials": 5,
        "num_perf_trials": 100,
        "timeout": 600,
    } | fields
    begin = time.monotonic()
    ticket = judge.post("/v2/jobs", {"kind": kind, "request": request, "force": True}).json()
    while True:
        answer: dict[str, Any] = judge.client.get(f"/v2/jobs/{ticket['id']}?wait=30").json()
        if answer["state"] not in ("queued", "running"):
            return answer | {"client_s": round(time.monotonic() - begin, 2)}


def measured(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a verdict."""
    verdict = answer["verdict"]
    if verdict is None:
        return {"error": answer["error"]}
    stats, metadata = verdict["runtime_stats"], verdict["metadata"]
    found = {
        "status": verdict["status"],
        "speedup": stats.get("fast_p"),
        "interval": [stats.get("ci_low"), stats.get("ci_high")],
        "gpu_ms": stats.get("gpu_ms"),
        "seconds": answer["client_s"],
        "held_s": stats.get("slot", {}).get("held_s"),
        "stages": metadata.get("seconds"),
        "flags": metadata.get("integrity"),
        "tuned": metadata.get("tuned"),
    }
    return found if stats else found | {"feedback": metadata.get("feedback")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tune-s", type=float, nargs="+", default=[20.0])
    parser.add_argument("--only", nargs="*", default=list(CASES))
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, (options.out.with_suffix(".log")).open("wb") as log:
        environment = {"JUDGE_DEVICE": "cuda", "MAX_CONCURRENT_EVALS": "1", "LOG_FORMAT": "json"}
        with running_judge(Path(folder), log=log, **environment) as judge:
            job(judge, CASES["gelu"])  # starts what the first evaluation of a judge has to
            for name in options.only:
                case = CASES[name]
                found = results[name] = {"declared": measured(job(judge, case))}
                for tune_s in options.tune_s:
                    found[f"tuned_{tune_s:g}"] = measured(job(judge, case, tune_s=tune_s))
                profile = job(judge, case, "profile")
                found["profile"] = {"seconds": profile["client_s"], "report": profile["report"]}
                found["profile"]["error"] = profile["error"]
                options.out.write_text(json.dumps(results, indent=1))
                best = found[f"tuned_{options.tune_s[-1]:g}"]
                sys.stdout.write(f"{name}: {found['declared'].get('speedup')} -> {best.get('speedup')}\n")


if __name__ == "__main__":
    main()
