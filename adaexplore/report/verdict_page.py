"""One verdict for people: status, interval, flags."""

from adaexplore.core.verdict import Verdict
from adaexplore.report.text import without_control, wrapped


def verdict_page(verdict: Verdict, width: int | None = None) -> str:
    """Format status and speedup in the first line; then tier, flags with evidence, workloads and feedback.

    Lines have at most ``width`` characters, except those of the feedback, which quotes code.
    """
    lines = [_headline(verdict)]
    if verdict.tier is not None:
        lines.append(f"precision: {verdict.tier}")
    lines += flag_lines(verdict)
    lines += [f"{'hidden ' * each.hidden}workload {each.summary}" for each in verdict.workloads]
    return "\n".join([wrapped("\n".join(lines), width), without_control(verdict.feedback)]).strip()


def flag_lines(verdict: Verdict) -> list[str]:
    """Return one line per flag: severity (``problem`` for a flag of the problem), id, evidence."""
    found = [(flag.severity, flag.id, flag.evidence) for flag in verdict.flags]
    found += [("problem", flag.id, flag.evidence) for flag in verdict.problem_flags]
    return [f"{owner}: {name}" + (f" ({evidence})" if evidence else "") for owner, name, evidence in found]


def _headline(verdict: Verdict) -> str:
    status = verdict.status.value
    if not verdict.correct:
        return status
    if verdict.speedup is None or verdict.runtime_ms is None:
        return f"{status} (not timed: no GPU)"
    interval = verdict.speedup_interval
    sure = "" if interval is None else f", 95% interval {interval.low:.3f} to {interval.high:.3f}"
    against, timing = "", verdict.timing
    if timing is not None and timing.baseline_ms is not None:
        words = " ".join(filter(None, (timing.baseline_type, timing.baseline, "reference")))
        against = f", {words} {timing.baseline_ms:.4g} ms"
    return f"{status}: {verdict.speedup:.3f}x{sure} ({verdict.runtime_ms:.4g} ms{against})"
