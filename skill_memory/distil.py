"""Distil a rule from a kind of failure: the prompt, and the parsing of the reply."""

import re
from collections.abc import Sequence

from adaexplore.core.plan import Purpose
from adaexplore.core.replies.answers import answer_in
from adaexplore.llm.protocol import Finish, ModelClient, ModelRequest, RuleData
from adaexplore.prompts.render import render
from skill_memory.failures.signature import Signature
from skill_memory.rule import Evidence
from skill_memory.store import SEPARATOR

_SHOWN = 6
_ERROR_CHARS = 1500
_RULE_CHARS = (20, 300)

_POSITION = re.compile(r"\b(?:lines?|column|col) \d+|\bat \d+:\d+|\b\w+\.py\b|(?:^|\s)/\w+/", re.IGNORECASE)
_NO_RULE = re.compile(r"no (?:rule|guidance)\W*", re.IGNORECASE)


class UnusableReply(Exception):
    """A reply with neither a rule nor "no rule"; another request may get one."""


def distil(
    signatures: Sequence[str], evidence: Sequence[Evidence], client: ModelClient, key: str
) -> str | None:
    """Ask the model for the rule behind failures of one kind, in one call; None if it answers "no rule".

    Raises:
        UnusableReply: the reply is cut, refused, or not in the requested form.
        ModelError: the model could not be asked.
    """
    known = [signature for each in signatures if (signature := Signature.from_key(each)) is not None]
    stage = known[0].stage if known else "compile"
    constructs = dict.fromkeys(signature.construct for signature in known if signature.construct)
    data = RuleData(tuple(constructs)[:_SHOWN], tuple(map(_shown, evidence[:_SHOWN])))
    prompt = render(
        "rule",
        stage=stage,
        constructs=", ".join(data.constructs) or "unknown",
        failures="\n\n".join(data.failures),
    )
    reply = client.complete(ModelRequest(prompt, Purpose.RULE, key, data=data))
    if reply.finish is not Finish.COMPLETE:
        raise UnusableReply(f"the reply was {reply.finish.value}")
    return rule_in(answer_in(reply.text))


def rule_in(reply: str) -> str | None:
    """Return the rule on the last line of ``reply``, before a closing fence; None for "no rule".

    Raises:
        UnusableReply: the line is no rule, a fragment, too long, or names lines or files.
    """
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    if lines and lines[-1] == "```":
        lines.pop()
    if not lines:
        raise UnusableReply("the reply is empty")
    rule = re.sub(r"^(?:[-*>]\s+|\d+[.)]\s+|Rule:\s*)+", "", lines[-1]).strip("*\"' ")
    if rule.startswith("`") and rule.endswith("`") and rule.count("`") == 2:
        rule = rule[1:-1]
    shortest, longest = _RULE_CHARS
    if _NO_RULE.fullmatch(rule):
        return None
    if not rule.lower().startswith("you cannot "):
        raise UnusableReply('the last line of the reply does not begin with "You cannot"')
    if not shortest <= len(rule) <= longest:
        raise UnusableReply(f"the rule has {len(rule)} characters, not {shortest} to {longest}")
    if SEPARATOR in rule or _POSITION.search(rule):
        raise UnusableReply(f"the rule names a line or a file, or holds {SEPARATOR}")
    return "You" + rule[3:]


def _shown(item: Evidence) -> str:
    code = f"```python\n{item.excerpt}\n```\n" if item.excerpt else ""
    return f"{code}{item.error[-_ERROR_CHARS:]}"
