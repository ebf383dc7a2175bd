"""The stored table of timed kernels.

Lines of JSON, compressed: the first says what was timed with what, then comes a line for each structure of a
shape, from plain ones to elaborate ones, which names its axes, and after it one for each of its candidates:
the values along the axes, the slip, the status and, where that is ``ok``, the repeats in microseconds.
"""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from adaexplore.core.errors import ConfigError
from tool_scripts.search_bench.templates.space import EAGER, FAMILIES, SLIP_AXIS, Point, Value

OK = "ok"
STATUSES = (OK, "compile_error", "out_of_resources", "launch_error", "wrong")


@dataclass(frozen=True)
class Timed:
    """One candidate as it was measured: its status and, where that is ``ok``, its repeats."""

    point: Point
    status: str
    repeats_us: tuple[float, ...] = ()

    @property
    def correct(self) -> bool:
        """Whether it compiled, ran and agreed with the reference."""
        return self.status == OK

    @property
    def median_us(self) -> float:
        """The time that counts as its true one."""
        return median(self.repeats_us)


@dataclass(frozen=True)
class Landscape:
    """All candidates of one shape of one family, and torch's time there."""

    family: str
    shape: tuple[int, ...]
    eager_us: tuple[float, ...]
    timed: tuple[Timed, ...]

    @property
    def name(self) -> str:
        """Such as ``softmax 8192x4096``."""
        return f"{self.family} {'x'.join(map(str, self.shape))}"

    def speedup(self, timed: Timed) -> float:
        """The true speedup of a correct candidate."""
        return median(self.eager_us) / timed.median_us


@dataclass(frozen=True)
class Table:
    """What was timed, and with what."""

    about: Mapping[str, Any]
    landscapes: tuple[Landscape, ...]


def read_table(file: Path) -> Table:
    """The table in ``file``.

    Raises:
        ConfigError: it cannot be read, or a line of it is malformed; the line is named.
    """
    try:
        lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    except (OSError, EOFError, ValueError) as error:
        raise ConfigError(
            f"{file} is not a table of kernels ({error}): time one, or restore the file"
        ) from None
    found: dict[tuple[str, tuple[int, ...]], list[Timed]] = {}
    about: Mapping[str, Any] = {}
    head: tuple[str, tuple[int, ...], str, tuple[str, ...]] | None = None
    for number, line in enumerate(lines, start=1):
        try:
            data = json.loads(line)
            if number == 1:
                about = _about(data)
            elif isinstance(data, dict):
                head = _head(data)
            elif head is None:
                raise ValueError("a candidate before the first structure")
            else:
                found.setdefault(head[:2], []).append(_timed(head, data))
        except (ValueError, KeyError, TypeError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ConfigError(f"{file}, line {number} is malformed ({what}): pack the table again") from None
    landscapes = tuple(_landscape(file, *key, timed) for key, timed in found.items())
    if not landscapes:
        raise ConfigError(f"{file} holds no candidate: time some first")
    return Table(about, landscapes)


def read_records(file: Path) -> Iterator[dict[str, Any]]:
    """What ``time_kernel_table.py`` wrote, without a last line that was cut off; nothing where no file is."""
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)


def point_of(data: Mapping[str, Any]) -> Point:
    """The point that a record or an order is about."""
    return Point(data["family"], tuple(data["shape"]), data["structure"], data["choices"])


def pack(records: Path, file: Path) -> int:
    """Store the records of ``time_kernel_table.py`` as a table; returns the number of candidates.

    Raises:
        ConfigError: there are no records, or they say nothing about the machine.
    """
    about: dict[str, Any] = {}
    groups: dict[tuple[str, tuple[int, ...], str], list[Timed]] = {}
    for data in read_records(records):
        if "structure" not in data:
            about = about or {**data, "command": _without_folders(data["command"])}
            continue
        point = point_of(data)
        key = (point.family, point.shape, point.structure)
        groups.setdefault(key, []).append(Timed(point, data["status"], tuple(data.get("us", ()))))
    if not about:
        raise ConfigError(f"{records} does not say what it was timed on: give the records of a whole run")
    lines = [about, *_lines(groups)]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return sum(map(len, groups.values()))


def _lines(groups: Mapping[tuple[str, tuple[int, ...], str], Sequence[Timed]]) -> Iterator[Any]:
    for (family, shape, structure), timed in sorted(groups.items(), key=lambda item: _rank(*item[0])):
        axes = [axis for axis in timed[0].point.choices if axis != SLIP_AXIS]
        yield {"family": family, "shape": shape, "structure": structure, "axes": axes}
        for one in timed:
            values = [one.point.choices[axis] for axis in axes]
            yield [*values, one.point.slip, one.status, *map(_short, one.repeats_us)]


def _rank(family: str, shape: tuple[int, ...], structure: str) -> tuple[int, tuple[int, ...], int]:
    """Families as they are listed; within a shape torch first, then structures from plain to elaborate."""
    names = [EAGER, *(known.name for known in FAMILIES[family].structures)]
    return list(FAMILIES).index(family), shape, names.index(structure)


def _without_folders(command: str) -> str:
    """Absolute paths say nothing on another machine."""
    return " ".join(Path(word).name if word.startswith("/") else word for word in command.split())


def _short(value: float) -> float:
    return int(value) if value == int(value) else value


def _about(data: Any) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise ValueError("the first line says what was timed where")
    for name in ("hardware", "versions", "date", "command"):
        data[name]
    return data


def _head(data: Mapping[str, Any]) -> tuple[str, tuple[int, ...], str, tuple[str, ...]]:
    return str(data["family"]), tuple(map(int, data["shape"])), str(data["structure"]), tuple(data["axes"])


def _timed(head: tuple[str, tuple[int, ...], str, tuple[str, ...]], data: Sequence[Any]) -> Timed:
    family, shape, structure, axes = head
    if len(data) < len(axes) + 2:
        raise ValueError(f"{len(axes)} values, a slip and a status, got {len(data)} entries")
    choices: dict[str, Value] = dict(zip(axes, data, strict=False))
    slip, status, *repeats = data[len(axes) :]
    if status not in STATUSES:
        raise ValueError(f"unknown status {status!r}")
    if (status == OK) != bool(repeats) or not _positive(repeats):
        raise ValueError(f"status {status} with the times {repeats}")
    choices[SLIP_AXIS] = slip
    return Timed(Point(family, shape, structure, choices), status, tuple(map(float, repeats)))


def _positive(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int | float) and value > 0 for value in values)


def _landscape(file: Path, family: str, shape: tuple[int, ...], timed: Sequence[Timed]) -> Landscape:
    eager = [one for one in timed if one.point.structure == EAGER and one.correct]
    if not eager:
        raise ConfigError(
            f"{file}: {family} {shape} has no time of torch, nothing can be compared: time it again"
        )
    rest = tuple(one for one in timed if one.point.structure != EAGER)
    return Landscape(family, shape, eager[0].repeats_us, rest)
