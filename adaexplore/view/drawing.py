"""SVG elements with escaped text and short numbers."""

import math
import re
from collections.abc import Sequence
from xml.etree import ElementTree

from markupsafe import Markup

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Drawing:
    """An SVG to which elements are added."""

    def __init__(self, width: float, height: float, label: str, **attributes: str) -> None:
        size = {"width": _short(width), "height": _short(height)}
        box = {"viewBox": f"0 0 {size['width']} {size['height']}"}
        named = {"aria-label": clean(label), "xmlns": "http://www.w3.org/2000/svg"}
        self.root = ElementTree.Element("svg", {**size, **box, **named, **attributes})

    def add(
        self,
        tag: str,
        classes: str = "",
        inside: ElementTree.Element | None = None,
        text: str | None = None,
        **attributes: float | str,
    ) -> ElementTree.Element:
        """Add an element; ``_`` in names of attributes becomes ``-``."""
        given = {name.replace("_", "-"): _short(value) for name, value in attributes.items()}
        parent = self.root if inside is None else inside
        element = ElementTree.SubElement(parent, tag, {"class": classes, **given} if classes else given)
        if text is not None:
            element.text = clean(text)
        return element

    def path(self, classes: str, points: Sequence[tuple[float, float]], close: bool = False) -> None:
        """Add a line through ``points``, or the area within them."""
        if points:
            line = "L".join(f"{_short(x)} {_short(y)}" for x, y in points)
            self.add("path", classes, d=f"M{line}{'Z' if close else ''}")

    def markup(self) -> Markup:
        return Markup(ElementTree.tostring(self.root, encoding="unicode"))


class Axis:
    """Maps values to pixels, on a plain or a logarithmic scale."""

    def __init__(self, low: float, high: float, start: float, end: float, log: bool = False) -> None:
        """Map ``low`` to ``start`` and ``high`` to ``end``."""
        self.low, self.high = low, max(high, low * 1.01, low + 1e-6)
        self._start, self._end, self.log = start, end, log

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; values beyond the ends are moved to these."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> list[float]:
        """Return at most eight round values."""
        if self.log:
            found = [
                factor * 10.0**power
                for power in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
                for factor in (1, 2, 5)
                if self.low * 0.999 <= factor * 10.0**power <= self.high * 1.001
            ]
            return found[:: math.ceil(len(found) / 8)] if found else []
        raw = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(raw))
        width = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= raw * 0.999)
        first = math.ceil(self.low / width)
        return [width * index for index in range(first, math.floor(self.high / width * 1.0001) + 1)]


def clean(text: str) -> str:
    """Return text without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)


def _short(value: float | str) -> str:
    return (
        clean(value) if isinstance(value, str) else f"{value:.7g}" if abs(value) >= 1000 else f"{value:.5g}"
    )
