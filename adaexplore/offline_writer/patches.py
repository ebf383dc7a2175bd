"""Edits that turn one source into another; each old text occurs in its source exactly once."""

from difflib import SequenceMatcher

from adaexplore.core.text.edits import Edit, EditError, apply_edits, parse_edits


def edits_between(old: str, new: str) -> str:
    """Return numbered old/new pairs, as in an answer to a small step; "" without changes."""
    if old.strip("\n") == new.strip("\n"):
        return ""
    reply = _written(_edits(old.strip("\n").split("\n"), new.strip("\n").split("\n")))
    try:
        done = apply_edits(old, parse_edits(reply)).strip("\n") == new.strip("\n")
    except EditError:
        done = False
    return reply if done else _written([Edit(1, old.strip("\n"), new.strip("\n"))])


def _written(edits: list[Edit]) -> str:
    return "\n".join(
        f"<old_str_{edit.index}>\n{edit.old}\n</old_str_{edit.index}>\n"
        f"<new_str_{edit.index}>\n{edit.new}\n</new_str_{edit.index}>"
        for edit in edits
    )


def _edits(old: list[str], new: list[str]) -> list[Edit]:
    """Yield line edits from the last to the first, widened until their old text is unique."""
    text = "\n".join(old)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    changes = [(a, b, c, d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
    found: list[tuple[int, int, int, int]] = []
    for start, end, new_start, new_end in changes:
        while True:
            shown = "\n".join(old[start:end])
            unique = start < end and shown.strip() and text.count(shown) == 1
            ends = [
                line for part in (old[start:end], new[new_start:new_end]) for line in part[:1] + part[-1:]
            ]
            if unique and new_start < new_end and all(line.strip() for line in ends):
                break
            if start == 0 and end == len(old):
                break
            if start > 0:
                start, new_start = start - 1, new_start - 1
            if end < len(old):
                end, new_end = end + 1, new_end + 1
        while found and found[-1][1] >= start:
            start, _, new_start, _ = (*found[-1][:2], found[-1][2], found[-1][3])
            found.pop()
        found.append((start, end, new_start, new_end))
    return [
        Edit(index, "\n".join(old[a:b]), "\n".join(new[c:d]))
        for index, (a, b, c, d) in enumerate(reversed(found), start=1)
    ]
