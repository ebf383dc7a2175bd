"""Compose rules from failures: from the error's own words and the construct at its position."""

import re

from adaexplore.llm.protocol import MergeData, RuleData
from adaexplore.offline_writer.mistakes import mistake_table, rule_for

NO_RULE = "no rule"
_SAME_WORDS = 0.6
_MOST_NAMES = 8
_MOST_CHARS = 300

_MISSING = re.compile(r"module 'triton\.language' has no attribute '(\w+)'")
_KEYWORD = re.compile(r"unexpected keyword argument '(\w+)'")
_LIBRARY = re.compile(r"(?:tl|triton|torch|F|nn|libdevice)\.[\w.<>]+")
_SLIPS = re.compile(
    r"is not defined|invalid syntax|object has no attribute '_?[a-z]\w*_\w+'|'ModelNew' object|"
    r"takes \d+ positional|is not in list|list index out of range|^assert |must be (?:fp16|on CUDA)",
    re.MULTILINE,
)


def write_rule(data: RuleData) -> str:
    """Return a rule against the failures, one sentence, or "no rule"."""
    construct = ", ".join(data.constructs)
    errors = "\n\n".join(data.failures)
    missing = list(dict.fromkeys(_MISSING.findall(errors)))
    if len(missing) > 1:
        names = ", ".join(f"tl.{name}" for name in missing[:_MOST_NAMES])
        return f"You cannot use {names}, which triton.language does not have; use operators and what it has."
    for pattern, rule in mistake_table().errors.items():
        if re.search(pattern, errors):
            return rule.replace("{construct}", next(iter(_LIBRARY.findall(construct)), "an index"))
    return rule_for(errors) or _composed(construct, errors)


def same_rule(data: MergeData) -> str:
    """Compare two rules: "same" or "different"."""
    one, other = (set(re.findall(r"[a-z_][\w.]*\w=?", rule.lower())) for rule in (data.one, data.other))
    named, also_named = ({word for word in words if "." in word or "=" in word} for words in (one, other))
    alike = len(one & other) >= _SAME_WORDS * len(one | other)
    return "same" if alike and named == also_named else "different"


def _composed(construct: str, errors: str) -> str:
    """Return a rule from the construct and the error's last line, if the construct names a library."""
    names = _LIBRARY.findall(construct)
    if not names or _SLIPS.search(errors):
        return NO_RULE
    keyword = _KEYWORD.search(errors)
    if keyword is not None:
        return f"You cannot pass {keyword[1]}= to {names[0]}, which has no such argument."
    lines = [line.strip() for line in errors.splitlines() if line.strip(" `^")]
    message = re.sub(r"^(?:[\w.]+(?:Error|Exception)[:(]\s*)+", "", lines[-1]).strip('"( .)')
    if "object has no attribute" in message:
        return f"You cannot use {names[0]}, which does not exist."
    if "<" in message or not message:
        return f"You cannot use {names[0]} with these arguments; see its signature."
    return f"You cannot use {names[0]} in this way: {message}"[: _MOST_CHARS - 1] + "."
