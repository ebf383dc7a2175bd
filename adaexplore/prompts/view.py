"""The optional parts of a prompt, and the order in which they are dropped if it is too long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from adaexplore.core.draft import ShownKernel
from adaexplore.core.verdict import score_of


@dataclass(frozen=True)
class View:
    """The parts of a step's prompt that differ in number.

    Attributes:
        rules: rules of the skill memory, in the file's order.
        elite: kernels shown before ``recent``, in a separate block if the layout has one.
        recent: the other kernels; a small step edits the last one.
        example: whether a worked answer is shown.
        profiled: whether a profile is shown, if there is one.
        edits_last: whether the last kernel is the one to edit, so that it stays.
    """

    rules: tuple[str, ...] = ()
    elite: tuple[ShownKernel, ...] = ()
    recent: tuple[ShownKernel, ...] = ()
    example: bool = False
    profiled: bool = True
    edits_last: bool = False

    @property
    def kernels(self) -> tuple[ShownKernel, ...]:
        """All kernels in the order of their numbers."""
        return (*self.elite, *self.recent)


def smaller(view: View) -> Iterator[View]:
    """Yield ``view`` itself, then ever smaller views.

    Dropped are first the profile, then kernels (of a chain the oldest, of a pool the worst), then the worked
    answer, then rules from the last one on. The kernel to edit, and the best one of a pool, stay.
    """
    yield view
    if view.profiled:
        view = replace(view, profiled=False)
        yield view
    while len(view.kernels) > 1:
        view = _without(view, 0 if view.edits_last else _worst(view.kernels))
        yield view
    if view.example:
        view = replace(view, example=False)
        yield view
    while view.rules:
        view = replace(view, rules=view.rules[:-1])
        yield view


def _worst(kernels: tuple[ShownKernel, ...]) -> int:
    return min(range(len(kernels)), key=lambda index: score_of(kernels[index].verdict))


def _without(view: View, index: int) -> View:
    if index < len(view.elite):
        return replace(view, elite=(*view.elite[:index], *view.elite[index + 1 :]))
    index -= len(view.elite)
    return replace(view, recent=(*view.recent[:index], *view.recent[index + 1 :]))
