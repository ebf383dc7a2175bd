"""Make text of candidates and references short and comparable between runs."""

import re

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{5,}\b")
_PROCESS = re.compile(r"\b(pid|PID|process|tid)[ =:]+\d+")
_TEMPORARY = re.compile(r"(?<=/)tmp[a-z0-9_]{8}\b")
_INSTALLED = re.compile(r"(?:/[\w.+-]+)+/(?:site|dist)-packages/")


def scrub(text: str, folder: str) -> str:
    """Remove parts that differ between runs: addresses, process ids, private and temporary paths."""
    text = text.replace(f"{folder}/", "").replace(folder, ".")
    above = folder.rpartition("/")[0]
    text = text.replace(above, "..") if above else text
    text = _INSTALLED.sub("", text)
    text = _TEMPORARY.sub("tmp...", text)
    text = _ADDRESS.sub("0x...", text)
    return _PROCESS.sub(r"\1 N", text)


def clip(text: str, max_bytes: int, *, keep_end: bool = False) -> str:
    """Return at most ``max_bytes`` of UTF-8, cut at the end or, with ``keep_end``, at the beginning."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= max_bytes:
        return raw.decode()
    mark = "[...]"
    budget = max_bytes - len(mark) - 1
    part = (raw[-budget:] if keep_end else raw[:budget]).decode("utf-8", "ignore")
    return f"{mark} {part}" if keep_end else f"{part} {mark}"
