"""The cost of a run directory so far, including steps that were never recorded."""

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.plan import StepKind
from adaexplore.core.usage import Usage
from adaexplore.records.run_records import RunRecords


def spent(records: RunRecords) -> tuple[Usage, int]:
    """Return the run's cost so far, and how many of its recorded steps asked a model.

    Counted are all noted replies, and recorded steps without a noted reply: these were copied from
    another run. A step of the release, whose cost is unknown, is left out.

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
