"""The finished steps of a search."""

from collections.abc import Iterable, Iterator
from itertools import count, islice

from adaexplore.core.draft import MOST_SHOWN_CHARS, ShownKernel
from adaexplore.core.step import StepRecord
from adaexplore.core.verdict import score_of

_NOTHING = ShownKernel("", None)


class History:
    """Finished steps, one record per step; node 0 is the empty root.

    ``best`` is the best node of the search; ``best_clean`` is the best correct one without suspect flags.
    ``edits_failed`` are the results of the steps whose edits failed.
    """

    def __init__(self) -> None:
        self.best = _NOTHING
        self.best_clean = _NOTHING
        self.edits_failed: dict[int, str] = {}
        self._shown = {0: _NOTHING}

    def __len__(self) -> int:
        return len(self._shown) - 1

    def free_numbers(self, steps: int) -> Iterator[int]:
        """Return the lowest unused step numbers, so many that the total becomes ``steps``."""
        return islice((number for number in count(1) if number not in self._shown), max(steps - len(self), 0))

    def has(self, *node_ids: int) -> bool:
        return all(node_id in self._shown for node_id in node_ids)

    def add(self, record: StepRecord) -> None:
        repeated = record.verdict is not None and not record.evaluated and record.draft.verdict is None
        source, failed = record.draft.source, not score_of(record.verdict).correct
        kernel = ShownKernel(
            "" if failed and len(source) > MOST_SHOWN_CHARS else source, record.verdict, repeated
        )
        self._shown[record.node.plan.step] = kernel
        if record.result.edit_failed:
            self.edits_failed[record.node.plan.step] = record.result.name
        self.best = self._shown[record.node.global_best_node_id]
        clean = record.verdict is not None and record.verdict.correct and not record.verdict.suspect_flags
        if clean and score_of(record.verdict) > score_of(self.best_clean.verdict):
            self.best_clean = kernel

    def has_kernel(self, step: int) -> bool:
        return bool(self._shown.get(step, _NOTHING).source)

    def shown(self, node_ids: Iterable[int]) -> tuple[ShownKernel, ...]:
        return tuple(self._shown[node_id] for node_id in node_ids)
