"""Rules out of failures, composed from the error's own words and the construct that it points to."""

from __future__ import annotations

import re

from adaexplore.llm.offline.mistakes import rule_for

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
_BY_ERROR = (
    (
        r"Conflicting meta-parameters|got multiple values for argument",
        "You cannot pass a parameter that the autotune configs set when launching the kernel; leave "
        "it out of "
        "the call.",
    ),
    (
        r"out of resource: shared memory",
        "You cannot choose tiles whose operands, times num_stages, exceed the shared memory of a block; use "
        "smaller blocks or fewer stages.",
    ),
    (
        r"unsupported tensor index",
        "You cannot index a tensor inside a kernel by numbers, variables or slices, only by ':' and "
        "None; load "
        "the part you need, or select with tl.where and a reduction.",
    ),
    (
        r"nested function|StopIteration",
        "You cannot define a function inside a kernel; write it at module level with @triton.jit "
        "and call it.",
    ),
    (
        r"num_warps must be a power of",
        "You cannot use a num_warps that is no power of 2; take 1, 2, 4, 8 or 16.",
    ),
    (
        r"Shape element \d+ must be a power of 2",
        "You cannot give a block a dimension that is no power of 2, in tl.zeros, tl.full or a "
        "reshape; round up "
        "and mask.",
    ),
    (
        r"exceeds triton maximum tensor numel",
        "You cannot make a block of more than 1048576 elements; loop over smaller blocks.",
    ),
    (
        r"Unsupported ptr type",
        "You cannot load from or store to an integer or a loaded value; pass the tensor itself, so that the "
        "kernel gets a pointer.",
    ),
    (
        r"Expected dtype \['fp32', 'fp64'\]",
        "You cannot apply tl.exp, tl.log, tl.sqrt, tl.sin or tl.cos to half precision; convert with "
        ".to(tl.float32) first.",
    ),
    (r"`other` cannot be provided without", "You cannot pass other= to tl.load without mask=."),
    (
        r"unsupported AST node type: (?:Break|Continue)",
        "You cannot use break or continue in a kernel; bound the loop and mask what must not happen.",
    ),
    (
        r"comprehension|AST node type: ListComp",
        "You cannot build a list by a comprehension in a kernel; use separate variables or one larger block.",
    ),
    (
        r"invalid operands of type pointer",
        "You cannot compare a pointer with a number in a kernel; pass a tl.constexpr flag instead.",
    ),
    (
        r"missing \d+ required positional argument",
        "You cannot launch a kernel without a value for each parameter that has no default and is "
        "not set by an "
        "autotune config.",
    ),
    (
        r"Value argument cannot be block type",
        "You cannot store a block through a scalar pointer; reduce it to a scalar, or offset the "
        "pointer by a "
        "tl.arange.",
    ),
    (
        r"grid sizes must be integers|cannot be interpreted as an integer",
        "You cannot launch with a grid whose entries are tuples; give one flat tuple of integers.",
    ),
    (
        r"Keyword argument \w+ was specified but unrecognised",
        "You cannot pass a keyword at the launch that is neither a parameter of the kernel nor a "
        "launch option.",
    ),
    (
        r"[Mm]ismatched type for|Loop-carried variable",
        "You cannot give one variable different dtypes or shapes in the branches of a run-time if, or before "
        "and inside a loop.",
    ),
    (
        r"mark_dirty can only accept variables",
        "You cannot mark as dirty in an autograd function what is no tensor of its inputs.",
    ),
    (
        r"object has no attribute 'at'",
        "You cannot update a tensor with .at[i].set(v) in a kernel; use tl.where.",
    ),
    (
        r"outside of JIT functions",
        "You cannot use {construct} on tensors in this way: assign no elements, index by ':' and "
        "None only, and "
        "take element-wise maxima with tl.maximum(a, b).",
    ),
)


def write_rule(prompt: str) -> str:
    """The answer to a prompt that asks for a rule: one sentence, or "no rule"."""
    construct = _section(prompt, "The construct")
    errors = _section(prompt, "The failures")
    missing = list(dict.fromkeys(_MISSING.findall(errors)))
    if len(missing) > 1:
        names = ", ".join(f"tl.{name}" for name in missing[:_MOST_NAMES])
        return f"You cannot use {names}, which triton.language does not have; use operators and what it has."
    for pattern, rule in _BY_ERROR:
        if re.search(pattern, errors):
            return rule.replace("{construct}", _plain(construct))
    return rule_for(errors) or _composed(construct, errors)


def same_rule(prompt: str) -> str:
    """The answer to a prompt that asks whether two rules are one: "same" or "different"."""
    rules = re.findall(r"^[12]\. (You cannot .*)$", prompt, re.MULTILINE)
    if len(rules) != 2:
        return "different"
    one, other = (set(re.findall(r"[a-z_][\w.]*\w=?", rule.lower())) for rule in rules)
    named, also_named = ({word for word in words if "." in word or "=" in word} for words in (one, other))
    alike = len(one & other) >= _SAME_WORDS * len(one | other)
    return "same" if alike and named == also_named else "different"


def _composed(construct: str, errors: str) -> str:
    """A rule from the construct and the error's last line, where a library's name is in the first."""
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


def _plain(construct: str) -> str:
    names = _LIBRARY.findall(construct)
    return names[0] if names else "an index"


def _section(prompt: str, title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", prompt, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""
