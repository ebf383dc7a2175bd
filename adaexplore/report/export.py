"""Export steps of recorded runs as training data: one JSON object per row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from adaexplore.core.draft import DraftOutcome, Exchange
from adaexplore.core.judging.status import Status
from adaexplore.core.step import StepRecord
from adaexplore.core.text.identity import source_identity
from adaexplore.core.verdict import Verdict
from adaexplore.records.run_records import RunRecords

Row = dict[str, Any]


class ExportFormat(StrEnum):
    MESSAGES = "messages"  # the whole conversation
    SFT = "sft"  # the conversation before the answer, and the answer
    PREFERENCE = "preference"  # a prompt, a good answer and a worse one
    VERL = "verl"  # a prompt and the values its answers are compared with


@dataclass(frozen=True)
class Told:
    """A step whose last reply holds the judged kernel."""

    run: str
    task: str
    reference: str
    record: StepRecord
    verdict: Verdict
    conversation: tuple[Exchange, ...]

    @property
    def messages(self) -> list[dict[str, str]]:
        """Return the conversation as chat messages; the last one holds the kernel."""
        return [
            {"role": role, "content": text}
            for each in self.conversation
            for role, text in (("user", each.prompt), ("assistant", each.reply))
        ]

    @property
    def context(self) -> tuple[Any, ...]:
        """Return the common part of siblings: the shown kernels and the request."""
        plan = self.record.node.plan
        return plan.kind, plan.parent_id, plan.context_ids, plan.elite_ids

    def facts(self) -> Row:
        """Return the origin of the row, and its verdict."""
        return {
            "run": self.run,
            "task": self.task,
            "step": self.record.node.plan.step,
            "kind": self.record.node.plan.kind.value,
            "status": self.verdict.status.value,
            "speedup": self.verdict.speedup,
            "interval": list(self.verdict.speedup_interval or ()),
            "flags": [flag.id for flag in self.verdict.flags],
        }


def export(run: RunRecords, kind: ExportFormat, min_gain: float | None = None) -> Iterator[Row]:
    """Yield the rows of a run; each kernel of a task appears once.

    A good kernel is correct, neither rejected nor suspect, and, with ``min_gain``, its speedup interval is
    at or above that; problems that trivial answers solve have no good kernel. A worse kernel is a sibling
    that is wrong or whose interval is lower.

    Raises:
        RecordError: a record is damaged.
    """
    for key in run.tasks():
        told = list(_told(run, key))
        good = [each for each in told if _good(each.verdict, min_gain)]
        match kind:
            case ExportFormat.MESSAGES:
                yield from ({"messages": each.messages, **each.facts()} for each in good)
            case ExportFormat.SFT:
                yield from (
                    {"prompt": each.messages[:-1], "completion": each.messages[-1:], **each.facts()}
                    for each in good
                )
            case ExportFormat.PREFERENCE:
                yield from _pairs(good, told)
            case ExportFormat.VERL:
                yield from _verl(good)


def _told(run: RunRecords, key: str) -> Iterator[Told]:
    """Yield the steps with replies and a judged kernel; equal programs once."""
    records = run.task(key)
    reference = records.reference() if records.has_reference() else ""
    seen = set()
    for record in records.steps():
        draft, verdict = record.draft, record.verdict
        judged = record.evaluated and draft.outcome is DraftOutcome.WRITTEN
        if not judged or verdict is None or not all(each.reply for each in draft.exchanges):
            continue
        identity = source_identity(draft.source)
        if not draft.exchanges or identity in seen:
            continue
        seen.add(identity)
        begin = max(place for place, each in enumerate(draft.exchanges) if not each.reason)
        yield Told(str(run.folder), key, reference, record, verdict, draft.exchanges[begin:])


def _good(verdict: Verdict, min_gain: float | None) -> bool:
    if not verdict.correct or verdict.suspect_flags or verdict.degenerate:
        return False
    interval = verdict.speedup_interval
    return min_gain is None or (interval is not None and interval.low >= min_gain)


def _worse(verdict: Verdict, than: Verdict) -> bool:
    if not verdict.correct:
        return verdict.status is not Status.NOT_CHECKED
    own, other = verdict.speedup_interval, than.speedup_interval
    return own is not None and other is not None and own.high < other.low


def _pairs(good: Sequence[Told], told: Sequence[Told]) -> Iterator[Row]:
    """Yield each good answer with each worse answer to a sibling's prompt; both without a repair."""
    for chosen in good:
        for other in told:
            alone = len(chosen.conversation) == len(other.conversation) == 1
            if alone and chosen.context == other.context and _worse(other.verdict, chosen.verdict):
                yield {
                    "prompt": chosen.messages[:-1],
                    "chosen": chosen.messages[-1:],
                    "rejected": other.messages[-1:],
                    **chosen.facts(),
                    "rejected_step": other.record.node.plan.step,
                    "rejected_status": other.verdict.status.value,
                }


def _verl(good: Sequence[Told]) -> Iterator[Row]:
    """Yield each opening prompt once, with the fastest good kernel that answered it."""
    best: dict[str, Told] = {}
    for each in good:
        prompt = each.conversation[0].prompt
        if prompt not in best or each.verdict.score > best[prompt].verdict.score:
            best[prompt] = each
    for each in best.values():
        yield {
            "data_source": "adaexplore",
            "prompt": each.messages[:1],
            "ability": "triton",
            "reward_model": {"style": "rule", "ground_truth": each.reference},
            "extra_info": {**each.facts(), "answer": each.record.draft.source},
        }
