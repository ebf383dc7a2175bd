"""The judges that a command uses: remote ones, or one started for the command."""

import functools
import logging
import os
import secrets
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from adaexplore.core.wire import EvaluationRequest
from adaexplore.judge_client.connection import Connection, open_client
from adaexplore.judge_client.dummy import DummyJudge
from adaexplore.judge_client.embedded import embedded_judge
from adaexplore.judge_client.hardware import contradiction
from adaexplore.judge_client.http import TRIALS, HttpJudge
from adaexplore.judge_client.protocol import Judge
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import read_environment

logger = logging.getLogger(__name__)


class JudgeAccess:
    """The judges of a command, one per GPU or one for all; thread-safe."""

    def __init__(self, judges: Sequence[Judge], other_gpus: Mapping[str, Judge] | None = None) -> None:
        """Use ``judges``; the first one states their identity.

        ``other_gpus`` are the judges of further GPU models, on which correct kernels are judged too.

        Raises:
            JudgeUnavailableError: no judge answers, or it lacks a needed GPU.
        """
        self.first = judges[0]
        self.identity = self.first.identity()
        self.other_gpus = other_gpus or {}
        for judge in self.other_gpus.values():
            judge.identity()  # a missing GPU shows before any work
        self._judges = tuple(judges)
        self._busy = [0] * len(judges)
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, home: int = 0) -> Iterator[Judge]:
        """Lend the judge with the fewest requests; ties go to the next one from number ``home`` on."""
        count = len(self._judges)
        with self._lock:
            place = min(range(count), key=lambda place: (self._busy[place], (place - home) % count))
            self._busy[place] += 1
        try:
            yield self._judges[place]
        finally:
            with self._lock:
                self._busy[place] -= 1


def judge_packages(config: RunConfig) -> Callable[[], Collection[str]]:
    """Return a function that asks the judge once for the packages that problems can import.

    It raises JudgeUnavailableError if no judge answers.
    """

    @functools.cache
    def ask() -> Collection[str]:
        with open_judge(config) as access:
            environment = access.first.environment()
        return frozenset() if environment is None else frozenset(environment.packages)

    return ask


@contextmanager
def open_judge(
    config: RunConfig,
    log_path: Path | None = None,
    stop: threading.Event | None = None,
    *,
    force: bool = False,
    samples: bool = False,
    trials: int = TRIALS,
) -> Iterator[JudgeAccess]:
    """Connect to the remote judge, or start one for the run with its own token; log the rules in force.

    Args:
        config: the judge's address and its settings.
        log_path: log of the run's own judge; by default a file that is deleted at the end.
        stop: an event; when set, waiting for the judge ends.
        force: measure each candidate again, even if the judge knows its verdict.
        samples: ask for each timed call of the baseline.
        trials: number of fresh input sets on which outputs are compared.

    Raises:
        JudgeUnavailableError: no judge answers, or it cannot be started.
    """
    if config.dummy:
        _say_rules(config)
        yield JudgeAccess([DummyJudge(config.seed)])
        return
    with ExitStack() as stack:
        gpu_ids: Sequence[int] = config.gpu_ids or ()
        if config.use_remote_eval:
            url, own_log = config.remote_eval_url, None
            token = read_environment(os.environ).judge_token
        else:
            if log_path is None:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="adaexplore-judge-"))
                log_path = Path(folder, "judge.log")
            own_log = log_path
            token = secrets.token_urlsafe(32)
            url = stack.enter_context(embedded_judge(config, own_log, token))
            gpu_ids = ()
        client = stack.enter_context(open_client())
        first, *others = config.gpu_models or (None,)
        settings = EvaluationRequest(
            tolerance=config.tolerance,
            tf32=config.tf32,
            tier=config.tier,
            baseline=config.baseline,
            timeout=config.timeout,
            samples=samples,
            tune_s=config.tune_s,
            gpu_name=None if samples else _recorded_gpu(config),  # recorded times would replace these
            gpu=first,
        )
        sleep = (stop or threading.Event()).wait
        connection = Connection(url, token=token, own_log=own_log, client=client, sleep=sleep)

        def judge(**differing: object) -> HttpJudge:
            own = settings.model_copy(update=differing)
            return HttpJudge(
                connection, own, force=force, try_reference=config.preset != "paper", trials=trials
            )

        elsewhere = {"gpu_name": None, "tune_s": 0.0}  # with the tunables of the first GPU
        access = JudgeAccess(
            [judge(device=gpu) for gpu in gpu_ids or (None,)],
            {model: judge(gpu=model, **elsewhere) for model in others if model},
        )
        warning = contradiction(config.gpu_name, access.identity)
        if warning is not None:
            logger.warning("%s", warning)
        _say_rules(config)
        yield access


def _say_rules(config: RunConfig) -> None:
    """Log what decides whether a kernel is right here."""
    by = "random verdicts (dummy)" if config.dummy else "judging"
    logger.info("%s by preset %s: tier %s, TF32 policy %s", by, config.preset, config.tier, config.tf32)


def _recorded_gpu(config: RunConfig) -> str | None:
    """Return the GPU whose recorded baselines the judge may use.

    Recorded baselines are eager times of KernelBench's problems; synthesised tasks have the same numbers.
    """
    usable = config.gpu_name != "auto" and config.test_source == "KB" and config.baseline == "eager"
    return config.gpu_name if usable else None
