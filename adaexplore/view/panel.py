"""A node's panel: highlighted code, differences, verdict in words."""

import json
from dataclasses import dataclass

from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from adaexplore.core.judging.flags import REJECT, SUSPECT
from adaexplore.core.metrics import to_metrics
from adaexplore.core.text.differences import differences_between
from adaexplore.report.verdict_page import verdict_page
from adaexplore.view.model import Details

MAX_TEXT = 200_000
"""Maximum characters of a shown text."""

MAX_HIGHLIGHTED = 60_000
MAX_COMPARED = 2_000
"""Maximum characters of highlighted code, and maximum lines of compared code."""

_SEVERITIES = {
    REJECT: "makes the kernel incorrect",
    SUSPECT: "look at the kernel before you believe the speedup",
}
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


@dataclass(frozen=True)
class Text:
    """A named text; it is wrapped unless it is ``code``."""

    title: str
    body: Markup
    open: bool = False
    code: bool = False


@dataclass(frozen=True)
class Panel:
    texts: tuple[Text, ...]
    flags: tuple[tuple[str, str], ...]
    summary: str
    feedback: str


def panel(details: Details) -> Panel:
    verdict, code = details.verdict, details.code or ""
    texts = []
    if code:
        texts.append(Text("Code", _coloured(code), open=True, code=True))
    if details.written:
        texts.append(Text("Code as the model wrote it", _coloured(details.written), code=True))
    for title, other in (
        ("Changes to the parent", details.parent_code),
        ("Changes to the reference", details.reference),
    ):
        if code and other:
            texts.append(Text(title, difference(other, code), code=True))
    for exchange in details.exchanges:
        why = f" (repair: {exchange.reason})" if exchange.reason else ""
        texts.append(Text(f"Prompt, {exchange.purpose}{why}", _plain(exchange.prompt)))
        if exchange.reply:
            ended = "" if exchange.finish == "complete" else f" ({exchange.finish})"
            texts.append(Text(f"Reply, {exchange.purpose}{ended}", _plain(exchange.reply)))
    if verdict is None:
        return Panel(tuple(texts), (), "", "")
    facts = json.dumps(to_metrics(verdict), indent=2, ensure_ascii=False, default=str)
    texts.append(Text("Verdict in full", _plain(facts), code=True))
    flags = [
        (
            f"{flag.severity}: {flag.id.replace('_', ' ')}",
            f"{_SEVERITIES.get(flag.severity, 'for information')}. {flag.evidence}",
        )
        for flag in verdict.flags
    ]
    flags += [
        (f"problem: {flag.id.replace('_', ' ')}", f"says nothing about the kernel. {flag.evidence}")
        for flag in verdict.problem_flags
    ]
    summary = verdict_page(verdict).splitlines()[0]
    return Panel(tuple(texts), tuple(flags), summary, verdict.feedback[:MAX_TEXT])


def difference(before: str, after: str) -> Markup:
    """Return the unified difference of two texts, line by line."""
    old, new = before[:MAX_TEXT].splitlines(), after[:MAX_TEXT].splitlines()
    if max(len(old), len(new)) > MAX_COMPARED:
        return Markup("over {} lines: too long to compare").format(MAX_COMPARED)
    told = differences_between("\n".join(old), "\n".join(new))
    marks = {"+": "add", "-": "del", "@": "hunk"}
    made = [
        Markup('<span class="{}">{}</span>').format(marks[line[0]], line)
        if line[:1] in marks
        else escape(line)
        for line in told.split("\n")
    ]
    return Markup("\n").join(made) if told else Markup("no difference")


def _coloured(code: str) -> Markup:
    if len(code) > MAX_HIGHLIGHTED:
        return _plain(code)
    return Markup(highlight(code, PythonLexer(stripnl=False), _FORMATTER))


def _plain(text: str) -> Markup:
    rest = len(text) - MAX_TEXT
    more = Markup("\n[{:,} more characters are in the run's folder]").format(rest) if rest > 0 else ""
    return escape(text[:MAX_TEXT]) + more


def code_style() -> str:
    """Return the style of code for light and dark pages."""
    light = HtmlFormatter(style="default").get_style_defs(".code")  # type: ignore[no-untyped-call]
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")  # type: ignore[no-untyped-call]
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n.code{{background:none}}"
