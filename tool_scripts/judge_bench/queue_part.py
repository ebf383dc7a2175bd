"""The part ``queue``: far more simultaneous submissions than the queue takes."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from tool_scripts.judge_bench.ledger import Ledger
from tool_scripts.judge_bench.plan import Plan, log
from tool_scripts.judge_bench.records import Flood
from tool_scripts.judge_bench.service import running_judge

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(16)]

def get_init_inputs():
    return []
"""
SLEEPER = """
import time
import torch

time.sleep({seconds})  # number {number}

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x + 1
"""
_HTTP_S = 300.0
_POLL_S = 30
_MAX_FAILURES = 10


def queue(plan: Plan, ledger: Ledger) -> int:
    """Submit everything at once, count, let some jobs end, cancel the others, look for lost ones."""
    if ledger.of(Flood):
        return 0
    log_file = plan.log_file(ledger.part)
    state = plan.out / f"{plan.device}-{ledger.part}.sqlite"
    environment = {"MAX_QUEUE_SIZE": str(plan.queue_limit), "JUDGE_STATE": str(state.resolve())}
    try:
        with running_judge(plan.device, 1, log_file, **environment) as address:
            flood = asyncio.run(_flood(plan, address))
    finally:
        for file in plan.out.glob(f"{state.name}*"):
            file.unlink()
    ledger.add(flood.model_copy(update={"started_twice": started_twice(log_file)}))
    return 0


def started_twice(log_file: Path) -> int:
    """Jobs with more than one ``job.started`` in a judge's JSON log."""
    starts: Counter[str] = Counter()
    for line in log_file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "job.started":
            starts[str(event.get("job"))] += 1
    return sum(count > 1 for count in starts.values())


async def _flood(plan: Plan, address: str) -> Flood:
    limits = httpx.Limits(max_connections=plan.queue_submissions, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=address, timeout=_HTTP_S, limits=limits, trust_env=False) as client:
        devices = len((await client.get("/queue/status")).json()["per_device"])
        begin = time.monotonic()
        numbers = range(plan.queue_submissions)
        answers = await asyncio.gather(*[_submit(client, plan.queue_sleep_s, number) for number in numbers])
        burst_s = time.monotonic() - begin
        load = (await client.get("/queue/status")).json()
        ids = [str(answer.json()["id"]) for answer in answers if _code(answer) == "202"]
        refused = [answer for answer in answers if _code(answer) == "429"]
        log.info("queue: %d accepted, %d refused in %.1f s", len(ids), len(refused), burst_s)
        ended, statuses = await _end(client, ids, plan.queue_finish)
        return Flood(
            submissions=len(answers),
            limit=plan.queue_limit,
            devices=devices,
            sleep_s=plan.queue_sleep_s,
            accepted=len(ids),
            refused=len(refused),
            retry_after=sum("Retry-After" in answer.headers for answer in refused),
            other_answers=dict(Counter(c for c in map(_code, answers) if c not in ("202", "429"))),
            running_and_waiting=load["total_queued"] + load["total_processing"],
            distinct_ids=len(set(ids)),
            ended=dict(ended),
            lost=len(ids) - ended["done"] - ended["cancelled"] - ended["failed"],
            started_twice=0,
            statuses=dict(statuses),
            burst_s=burst_s,
        )


async def _submit(client: httpx.AsyncClient, sleep_s: float, number: int) -> Any:
    request = {
        "original_model_src": REFERENCE,
        "custom_model_src": SLEEPER.format(seconds=sleep_s, number=number),
        "backend": "triton",
        "timeout": 600,
    }
    try:
        return await client.post("/v2/jobs", json={"kind": "candidate", "request": request, "force": True})
    except httpx.HTTPError as error:
        return error


def _code(answer: Any) -> str:
    return str(answer.status_code) if isinstance(answer, httpx.Response) else type(answer).__name__


async def _end(client: httpx.AsyncClient, ids: list[str], finish: int) -> tuple[Counter[str], Counter[str]]:
    """How every accepted job ends: the first ones by themselves, the others by being cancelled."""
    ended: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    waiting = [asyncio.create_task(_outcome(client, job)) for job in ids]
    for number, done in enumerate(asyncio.as_completed(waiting), 1):
        answer = await done
        ended[str(answer.get("state", "lost"))] += 1
        if answer.get("verdict"):
            statuses[str(answer["verdict"]["status"])] += 1
            log.info("queue: a job ended as %s", answer["verdict"]["status"])
        if number == finish:
            await asyncio.gather(*[client.delete(f"/v2/jobs/{job}") for job in ids])
    return ended, statuses


async def _outcome(client: httpx.AsyncClient, job: str) -> dict[str, Any]:
    failures = 0
    while True:
        try:
            response = await client.get(f"/v2/jobs/{job}", params={"wait": _POLL_S})
        except httpx.HTTPError as error:
            failures += 1
            if failures == _MAX_FAILURES:
                return {"state": type(error).__name__}
            await asyncio.sleep(1)
            continue
        if response.status_code != 200:
            return {"state": f"answer {response.status_code}"}
        answer: dict[str, Any] = response.json()
        if answer["state"] not in ("queued", "running"):
            return answer
