"""Convert a step's node to and from ``_log.json``; logs of the release can be read too."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import NodeState, StepRecord
from adaexplore.core.verdict import NO_SCORE, Score, Verdict, score_of

_SHORT = ("compiled", "correctness", "runtime")


def tree_log(record: StepRecord) -> dict[str, Any]:
    """Return the log of a tree search: the release's keys in its order, then ``outcome`` and ``evaluated``.

    The root's ``parent_node_id`` is null. ``elite_node_ids``, ``direction``, ``repairs`` (a count by reason),
    ``tuned``, ``pinned``, ``rewritten``, ``note`` and ``banned_node_ids`` exist only if they have a value.
    """
    node = record.node
    plan = node.plan
    repairs = Counter(exchange.reason for exchange in record.draft.exchanges if exchange.reason)
    optional = {
        "elite_node_ids": list(plan.elite_ids),
        "direction": plan.direction,
        "repairs": dict(sorted(repairs.items())),
        "tuned": record.written is not None,
        "pinned": record.pinned,
        "rewritten": record.draft.rewritten,
        "note": plan.note,
        "banned_node_ids": list(plan.banned),
    }
    return {
        "node_id": plan.step,
        "parent_node_id": None if plan.kind is StepKind.DUMMY_ROOT else plan.parent_id,
        "context_node_ids": list(plan.context_ids),
        "depth": node.depth,
        "created_by": plan.kind.value,
        "visits": node.visits,
        "total_reward": node.total_reward,
        "max_reward": node.max_reward,
        "avg_reward": node.total_reward / node.visits if node.visits else 0.0,
        "score": node.score.as_list(),
        "total_nodes": node.total_nodes,
        "global_best_node_id": node.global_best_node_id,
        "global_best_score": node.global_best_score.as_list(),
        "outcome": record.draft.outcome.value,
        "evaluated": record.evaluated,
        **{key: value for key, value in optional.items() if value},
    }


def proposal_log(
    record: StepRecord, metrics: Mapping[str, Any], context_metrics: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the log of IRL, IRB, IRLE and PS: the release's keys, then those of :func:`tree_log`.

    ``context_metrics`` are the short metrics of the shown kernels, first the elite, then the recent ones.
    """
    plan = record.node.plan
    log: dict[str, Any] = {
        "step": plan.step,
        "step_type": plan.kind.value,
        "context": {"recent": list(plan.context_ids), "elite": list(plan.elite_ids)},
        "context_metrics": context_metrics,
        "context_size": len(context_metrics),
        **{key: metrics[key] for key in _SHORT},
        "score": record.node.score.as_list(),
    }
    return log | {key: value for key, value in tree_log(record).items() if key != "elite_node_ids"}


def short_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of ``context_metrics`` for one kernel: compiled, correctness, runtime (ms), fast_p."""
    return {**{key: metrics[key] for key in _SHORT}, "fast_p": metrics["runtime_stats"].get("fast_p")}


def read_node(
    log: Mapping[str, Any], step: int, kind: StepKind, verdict: Verdict | None, before: NodeState | None
) -> NodeState:
    """Return the node of step ``step``, as its files are numbered.

    ``log`` is ``{}`` if the release wrote none; ``before``, the node of the previous step, completes logs of
    the release's linear agents.

    Raises:
        KeyError, TypeError, ValueError: the log is not of that shape.
    """
    if "node_id" not in log:
        return _linear_node(log, step, kind, verdict, before)
    if log["node_id"] != step:
        raise ValueError(f"it belongs to step {log['node_id']}")
    elite = log.get("elite_node_ids", log.get("context", {}).get("elite", ()))
    return NodeState(
        plan=Plan(
            step=step,
            kind=kind,
            parent_id=int(log["parent_node_id"] or 0),
            context_ids=tuple(int(node) for node in log["context_node_ids"]),
            elite_ids=tuple(int(node) for node in elite),
            direction=str(log.get("direction", "")),
            note=str(log.get("note", "")),
            banned=_numbers(log.get("banned_node_ids")),
        ),
        depth=int(log["depth"]),
        visits=int(log["visits"]),
        total_reward=float(log["total_reward"]),
        max_reward=float(log["max_reward"]),
        score=_score(log["score"]),
        total_nodes=int(log["total_nodes"]),
        global_best_node_id=int(log["global_best_node_id"]),
        global_best_score=_score(log["global_best_score"]),
    )


def _linear_node(
    log: Mapping[str, Any], step: int, kind: StepKind, verdict: Verdict | None, before: NodeState | None
) -> NodeState:
    """Return a node of the release's linear agents, whose logs have no tree: its statistics are zero."""
    context = log.get("context") or {}
    score = score_of(verdict)
    parent_id, depth, total_nodes, best_id, best = 0, 1, 1, 0, NO_SCORE
    if before is not None:
        total_nodes = before.total_nodes
        best_id, best = before.global_best_node_id, before.global_best_score
        if kind.edits:
            parent_id, depth = before.plan.step, before.depth + 1
    if score > best:
        best_id, best = step, score
    return NodeState(
        plan=Plan(step, kind, parent_id, _numbers(context.get("recent")), _numbers(context.get("elite"))),
        depth=depth,
        visits=0,
        total_reward=0.0,
        max_reward=0.0,
        score=score,
        total_nodes=total_nodes + 1,
        global_best_node_id=best_id,
        global_best_score=best,
    )


def _numbers(value: Any) -> tuple[int, ...]:
    """Return the step numbers in a field of a log; empty if a log of the release has none."""
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        return ()
    return tuple(value)


def _score(value: Any) -> Score:
    compiled, correct, speedup = value
    return Score(bool(compiled), bool(correct), float(speedup))
