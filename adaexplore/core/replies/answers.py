"""Separate the answer in a model's reply from its reasoning and from what follows its turn.

Some servers leave reasoning in the reply, in the marks of the model's family. A mark inside code (in a string
or a comment) or in a code span of prose is text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from adaexplore.core.replies.fences import Block, fenced_blocks, parses, unquoted

_TAGS = r"(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad)"
_HEADER = r"[^<>\n]{0,80}(?:<\|constrain\|>[^<>\n]{0,40})?<\|message\|>"
_MARK = re.compile(
    rf"(?P<opening><{_TAGS}(?:[ \t][^<>\n]{{0,80}})?>|\[THINK\]|◁think▷"
    r"|<\|(?:begin_of_thought|START_THINKING)\|>)"
    rf"|(?P<closing></{_TAGS}>|\[/THINK\]|◁/think▷|<\|(?:end_of_thought|END_THINKING)\|>)"
    r'|(?P<details><details[ \t][^<>\n]{0,80}type="reasoning"[^<>\n]{0,80}>)'
    r"|(?P<details_end></details>)"
    rf"|(?P<channel><\|channel\|>[ \t]*(?:analysis|commentary(?! to=)){_HEADER})"
    rf"|(?P<final><\|channel\|>[ \t]*(?:final|commentary to=){_HEADER}|assistantfinal)"
    r"|(?P<end><\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|call|END_RESPONSE)\|>|</s>|<end_of_turn>"
    r"|<eos>|<｜end▁of▁sentence｜>)",
    re.IGNORECASE,
)
_BARE_FINAL = "assistantfinal"
_BARE_CHANNELS = ("analysis", "commentary")
_NEAR = 200
"""A mark is seen as part of a string, comment or code span if that begins this near."""


def answer_in(reply: str) -> str:
    r"""Return the part of ``reply`` that is the answer.

    Line ends become ``\n``; byte order marks go, and quotation marks before lines of code.

    A closing mark without an opening one ends reasoning that began with the reply, because prompts of some
    models end with the opening one. Reasoning without an end holds no answer, unless a fenced block is the
    last thing in it.
    """
    text = reply.replace("\ufeff", "").replace("\r\n", "\n").replace("\r", "\n")
    return unquoted(text if _MARK.search(text) is None else _outside_reasoning(text))


def _outside_reasoning(text: str) -> str:
    blocks = fenced_blocks(text)
    marks = list(_marks(text, blocks))
    if not marks:
        return text
    finals = [place for place, mark in enumerate(marks) if mark.lastgroup == "final"]
    marks = marks[finals[-1] :] if finals else marks
    pieces: list[str] = []
    start = 0
    opened: re.Match[str] | None = None
    for mark in marks:
        kind = mark.lastgroup
        if kind in ("opening", "details", "channel"):
            if opened is None:
                pieces.append(text[start : mark.start()])
                opened = mark
        elif opened is not None and _closes(kind, opened):
            start, opened = mark.end(), None
        elif opened is None and kind in ("closing", "final"):
            pieces, start = [], mark.end()
        elif opened is None and kind == "end":
            before = "".join((*pieces, text[start : mark.start()]))
            if before.strip():
                return before.lstrip("\n ")
            start = mark.end()
    if opened is not None:
        pieces.append(_last_block(text, blocks, opened.end()))
    else:
        pieces.append(text[start:])
    return "".join(pieces).lstrip()


def _marks(text: str, blocks: Sequence[Block]) -> Iterator[re.Match[str]]:
    """Yield the marks outside code, in order."""
    if not blocks and parses(text):
        return
    starts = [block.start for block in blocks]
    is_code: dict[int, bool] = {}
    bare = text.lstrip().startswith(_BARE_CHANNELS)
    for mark in _MARK.finditer(text):
        if mark.group().lower() == _BARE_FINAL and not bare:
            continue
        number = bisect_right(starts, mark.start()) - 1
        if number >= 0 and mark.start() < blocks[number].end:
            if number not in is_code:
                is_code[number] = parses(blocks[number].text)
            if is_code[number] or _in_string_or_comment(text, mark):
                continue
        elif _enclosed(text, mark, "`"):
            continue
        yield mark


def _closes(kind: str | None, opened: re.Match[str]) -> bool:
    if opened.lastgroup == "channel":
        return kind in ("end", "final")
    if opened.lastgroup == "details":
        return kind == "details_end"
    return kind in ("closing", "final")


def _in_string_or_comment(text: str, mark: re.Match[str]) -> bool:
    before = text[max(mark.start() - _NEAR, 0) : mark.start()].rpartition("\n")[2]
    return "# " in before or any(_enclosed(text, mark, quote) for quote in "\"'")


def _enclosed(text: str, mark: re.Match[str], quote: str) -> bool:
    """Return whether the mark is between two ``quote`` characters on its line."""
    before = text[max(mark.start() - _NEAR, 0) : mark.start()].rpartition("\n")[2]
    after = text[mark.end() : mark.end() + _NEAR].partition("\n")[0]
    return before.count(quote) % 2 == 1 and quote in after


def _last_block(text: str, blocks: Sequence[Block], start: int) -> str:
    """Return the last block if it begins after ``start`` and nothing follows it; else ""."""
    if not blocks or blocks[-1].start < start or text[blocks[-1].end :].strip():
        return ""
    return text[blocks[-1].start :]
