"""Every deliberate error of this project, with its exit code.

    AdaExploreError                1   base: a one-line message for the user
    |-- UsageError                 2   the input is wrong; the message says what to type instead
    |   |-- ConfigError            2   a configuration key, value or file
    |   |-- TaskError              2   a problem file or a test list
    |   `-- RecordError            2   a run directory that cannot be read
    |-- ModelError                 3   the model could not be asked
    |   |-- ModelRequestError      3   it refused the request (400, 401, 404 ...): retrying cannot help
    |   `-- ModelUnavailableError  3   it did not answer in spite of retries
    |-- JudgeError                 4   the judge, not the candidate, failed
    |   |-- JudgeUnavailableError  4   no judge answers, or it is overloaded for too long
    |   |-- JudgeRequestError      4   the judge refused the request as malformed
    |   |   `-- RequestTooLargeError 4   the request is larger than the judge accepts
    |   `-- ProblemError           4   the reference module of the problem itself fails
    |-- StorageError               5   a file could not be written (disk full, no permission)
    |-- BudgetReached              6   the run's budget is spent; finished steps are on disk
    |-- AnswersPending             7   prompts wait in a mailbox; the same command continues
    `-- Interrupted              130   SIGINT or SIGTERM; finished steps are on disk

A bad kernel is never an error: it is a :class:`~adaexplore.core.verdict.Verdict`.
"""


class AdaExploreError(Exception):
    """Base of all deliberate errors; ``str()`` says what to do next, one line per mistake."""

    exit_code = 1


class UsageError(AdaExploreError):
    """The caller's input is wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration key, value or file is wrong."""


class TaskError(UsageError):
    """A problem file or a test list cannot be used."""


class RecordError(UsageError):
    """A run directory cannot be read."""


class ModelError(AdaExploreError):
    """The language model could not be asked."""

    exit_code = 3


class ModelRequestError(ModelError):
    """The model's service refused the request; asking again cannot help."""


class ModelUnavailableError(ModelError):
    """The model's service did not answer in spite of retries."""


class JudgeError(AdaExploreError):
    """The judge failed; says nothing about the candidate."""

    exit_code = 4


class JudgeUnavailableError(JudgeError):
    """No judge answers at the address, or it stayed overloaded."""


class JudgeRequestError(JudgeError):
    """The judge refused the request as malformed."""


class RequestTooLargeError(JudgeRequestError):
    """The request is larger than the judge accepts; caught if the candidate is the cause."""


class ProblemError(JudgeError):
    """The problem's own reference module fails or is too large for the judge's device."""


class StorageError(AdaExploreError):
    """A file could not be read or written."""

    exit_code = 5


class BudgetReached(AdaExploreError):
    """A limit of the run's cost or time; finished steps are on disk."""

    exit_code = 6


class AnswersPending(AdaExploreError):
    """So many prompts wait in a mailbox; finished steps are on disk."""

    exit_code = 7

    def __init__(self, message: str, prompts: int) -> None:
        super().__init__(message)
        self.prompts = prompts


class Interrupted(AdaExploreError):
    """The process was asked to stop; finished steps are on disk."""

    exit_code = 130
