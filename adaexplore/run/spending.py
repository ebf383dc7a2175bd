"""What a run directory has cost by now, steps that were never recorded included."""

from __future__ import annotations

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.plan import StepKind
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import ModelClient, ModelReply, ModelRequest
from adaexplore.records.run_records import RunRecords


class NotingClient:
    """A client whose replies' costs are noted in a run as they come."""

    def __init__(self, client: ModelClient, records: RunRecords) -> None:
        self._client = client
        self._records = records

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request through the wrapped client.

        Raises:
            StorageError: its cost cannot be noted.
        """
        reply = self._client.complete(request)
        self._records.write_usage(request.key, reply.usage)
        return reply


def spent(records: RunRecords) -> tuple[Usage, int]:
    """What the run cost so far, and how many of its recorded steps asked a model.

    All replies that were noted, and of the recorded steps those without any: they were taken over from
    another run. A step of the release, whose cost nobody knows, is left out.

    Raises:
        RecordError, StorageError: a record cannot be read.
    """
    noted = records.usage()
    costs = [usage for _, usage in noted]
    own = {request.rpartition("/")[0] for request, _ in noted}
    steps = 0
    for key in records.tasks():
        for step in records.task(key).summaries():
            asked = step.kind is not StepKind.DUMMY_ROOT and step.outcome is not DraftOutcome.SEED
            if asked and step.usage is not None:
                steps += 1
                if f"{key}/{step.step}" not in own:
                    costs.append(step.usage)
    return sum(costs, Usage()), steps
