"""One candidate against one reference: the trials, the timing, the verdict."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

from adaexplore.core.verdict import INTERPRETER, Status, Verdict
from adaexplore.core.wire import EvaluationRequest
from online_judge.channel import Channel, ChannelClosed, FrameError
from online_judge.evaluation import comparison, driver, feedback, modules, timing, trees
from online_judge.evaluation.arenas import Arena, lay_out, pack
from online_judge.evaluation.findings import Failure, Stage
from online_judge.evaluation.reference import Reference, ReferenceFailed
from online_judge.orders import Construct, Forward, Measure, Order

_POISON = 0xFF
_WRONG = (Status.WRONG_VALUE, Status.NONFINITE)


class PlayerGone(Exception):
    """The player closed its channel without an answer, or broke the protocol."""

    def __init__(self, stage: Stage, why: str) -> None:
        """``why`` is empty when it is just gone."""
        super().__init__(why)
        self.stage = stage
        self.why = why


class _Failed(Exception):
    """The candidate failed: ends the match with this verdict."""

    def __init__(self, status: Status, metadata: dict[str, Any], failure: Failure | None = None) -> None:
        super().__init__(status.value)
        self.status = status
        self.metadata = metadata
        self.failure = failure


class _Sender(pickle.Pickler):
    """Refuses what only the reference's own module could take out again: the player has none."""

    def reducer_override(self, obj: Any) -> Any:
        owner = obj if hasattr(obj, "__qualname__") else type(obj)
        if getattr(owner, "__module__", None) == modules.REFERENCE_MODULE:
            raise pickle.PicklingError(f"{owner.__qualname__} is the reference's own")
        return NotImplemented


class _Lock(Protocol):
    def hold(self, *, exclusive: bool) -> AbstractContextManager[None]: ...


class Match:
    """Referees one candidate; run it once, then free it when the player is gone."""

    def __init__(
        self,
        *,
        player: Channel,
        reference: Reference,
        request: EvaluationRequest,
        clock: Callable[[str, str], None],
        lock: _Lock,
        baselines: dict[tuple[str, ...], float],
        recorded_ms: float | None,
        facts: dict[str, Any],
        folder: str,
    ) -> None:
        """Prepare.

        Args:
            player: channel to the process that runs the candidate.
            reference: the truth.
            request: how to judge.
            clock: told whose time runs ("reference", "candidate", "none") and in which stage.
            lock: the device's lock.
            baselines: measured reference times by problem and precision; added to.
            recorded_ms: a recorded reference time to use instead, if there is one.
            facts: metadata that every verdict carries.
            folder: the player's private folder, for scrubbing.
        """
        self._player = player
        self._reference = reference
        self._request = request
        self._clock = clock
        self._lock = lock
        self._baselines = baselines
        self._recorded_ms = recorded_ms
        self._facts = facts
        self._folder = folder
        self._arenas: list[Arena] = []
        self._cuda = reference.cuda

    def run(self) -> Verdict:
        """Judge.

        Raises:
            ReferenceFailed: the reference fails; says nothing about the candidate.
            PlayerGone: the player died.
        """
        trials = self._request.num_correct_trials
        passed = 0
        facts = self._facts | feedback.of_precision(self._request.tf32, cuda=self._cuda)
        try:
            self._ask(Stage.LOAD, None, [])
            changed = self._construct(load=True)
            with self._holding(exclusive=False):
                for trial in range(trials):
                    try:
                        self._try(trial)
                    except _Failed as failed:
                        # A module may work its weights into another form while it is constructed, under
                        # their old names: then the ones that it came to by itself are the right ones.
                        if not (changed and trial == 0 and failed.status in _WRONG):
                            raise
                        self.free()
                        self._construct(load=False)
                        self._try(trial)
                    passed += 1
            runtime_ms, stats = self._measure()
        except _Failed as failed:
            count: dict[str, Any] = {}
            if failed.status in _WRONG or passed:
                count = {"correctness_trials": f"({passed} / {trials})"}
            return Verdict(status=failed.status, metadata=facts | count | failed.metadata)
        except driver.DriverError as error:
            reason = f"the GPU has too little free memory for its inputs and outputs ({error})"
            raise ReferenceFailed(reason) from error
        facts["correctness_trials"] = f"({passed} / {trials})"
        return Verdict(status=Status.PASSED, metadata=facts, runtime_ms=runtime_ms, runtime_stats=stats)

    def compile(self) -> Failure | None:
        """Have the candidate called once in a player that executes no kernel; what failed, if anything.

        Raises:
            ReferenceFailed, PlayerGone: as :meth:`run`.
        """
        try:
            self._ask(Stage.LOAD, None, [])
            self._construct(load=True)
            with self._holding(exclusive=False):
                self._clock("reference", Stage.FORWARD.value)
                sent, parcel = self._share(self._reference.inputs("compile"))
                places, nbytes = lay_out([])
                unused = Arena(nbytes, cuda=self._cuda)
                self._arenas.append(unused)
                order = Forward(parcel, unused.parcel(None, places), self._reference.call_seed("compile"))
                self._ask(Stage.FORWARD, order, [sent, unused])
        except _Failed as failed:
            return failed.failure
        return None

    def free(self) -> None:
        """Give back the memory shared with the player, which must be gone."""
        for arena in self._arenas:
            arena.free()
        self._arenas.clear()

    def _construct(self, *, load: bool) -> bool:
        """Have the candidate built; True where loading the weights changed what it came to by itself."""
        self._clock("reference", Stage.CONSTRUCT.value)
        arena, parcel = pack(self._reference.weights, cuda=self._cuda)
        self._arenas.append(arena)
        order = Construct(
            load=load,
            init_inputs=self._reference.init_inputs,
            weights=parcel,
            seed=self._reference.construct_seed,
            dtype=self._request.dtype_str,
        )
        answer = self._ask(Stage.CONSTRUCT, order, [arena])
        self.free()
        return answer.get("changed") is True

    def _try(self, trial: str | int) -> None:
        """One call with fresh hidden inputs, compared."""
        self._clock("reference", Stage.FORWARD.value)
        inputs = self._reference.inputs(trial)
        sent, inputs_parcel = self._share(inputs)
        expected = self._reference.outputs(inputs, trial)
        del inputs
        if self._cuda:
            torch.cuda.empty_cache()  # what the reference needed on the way is the candidate's now
        places, nbytes = lay_out(expected.leaves, contiguous=True)
        received = Arena(nbytes, cuda=self._cuda)
        self._arenas.append(received)
        received.fill(_POISON)
        order = Forward(
            inputs_parcel, received.parcel(expected.shape, places), self._reference.call_seed(trial)
        )
        answer = self._ask(Stage.FORWARD, order, [sent, received])
        self._clock("reference", Stage.FORWARD.value)
        self._check_form(answer, expected)
        for index, (place, want) in enumerate(zip(places, expected.leaves, strict=True)):
            got = received.view(place)
            found = comparison.difference(got, want.to(got.device), self._request.tolerance)
            if found is not None:
                name = "the output" if len(places) == 1 else f"output {index}"
                raise _Failed(found.status, feedback.of_difference(found, name))
        self.free()

    def _check_form(self, answer: dict[str, Any], expected: trees.Tree) -> None:
        """Structure, then shapes, then dtypes; the player claims them, its data must bear them out."""
        claimed = answer.get("leaves")
        if answer.get("structure") != expected.signature() or not isinstance(claimed, list):
            raise _Failed(
                Status.WRONG_SHAPE,
                feedback.of_issue(
                    Status.WRONG_SHAPE,
                    f"Output structure mismatch: expected {_short(expected.signature())}, "
                    f"got {_short(answer.get('structure'))} (T is a tensor)",
                ),
            )
        pairs = list(zip(claimed, expected.leaves, strict=False))
        for part, (status, what) in enumerate(((Status.WRONG_SHAPE, "shape"), (Status.WRONG_DTYPE, "dtype"))):
            for index, (claim, want) in enumerate(pairs):
                right: Any = list(want.shape) if part == 0 else str(want.dtype)
                got = claim[part] if isinstance(claim, list) and len(claim) == 3 else None
                if got != right:
                    name = "Output" if len(pairs) == 1 else f"Output {index}"
                    issue = f"{name} {what} mismatch: expected {right}, got {_short(got)}"
                    raise _Failed(status, feedback.of_issue(status, issue))
        for claim, want in pairs:
            if self._cuda and claim[2] != want.device.type:
                message = f"an output is on {_short(claim[2])}, expected on {want.device.type}"
                failure = Failure(Status.LAUNCH, Stage.FORWARD, "DeviceMismatch", message)
                raise _Failed(failure.status, feedback.of_failure(failure, self._folder))

    def _measure(self) -> tuple[float | None, dict[str, Any]]:
        """Mean time in ms and v1's statistics; nothing of it under the interpreter."""
        if not self._cuda:
            return None, {"fast_p": 1.0, "timing": INTERPRETER}
        if not self._request.measure_performance:
            return None, {}
        with self._holding(exclusive=True):
            baseline_ms, kind = self._baseline_ms()
            self._clock("reference", Stage.TIMING.value)
            sent, parcel = self._share(self._reference.inputs("timing"))
            order = Measure(parcel, self._request.num_perf_trials, self._reference.call_seed("timing"))
            answer = self._ask(Stage.TIMING, order, [sent])
            self.free()
        times = timing.summarise(self._samples(answer))
        with self._holding(exclusive=False):
            self._try("audit")
        stats: dict[str, Any] = {
            "mean": times.mean,
            "std": times.std,
            "min": times.min,
            "max": times.max,
            "median": times.median,
            "num_trials": times.num_trials,
            "hardware": self._facts["hardware"],
            "device": self._facts["device"],
            "fast_p": baseline_ms / times.mean,
            "baseline_type": kind,
            "baseline_time": baseline_ms,
        }
        return times.mean, stats

    def _baseline_ms(self) -> tuple[float, str]:
        """The reference's mean time: recorded if there is one, else measured once and kept."""
        if self._recorded_ms is not None:
            return self._recorded_ms, "recorded"
        key = (
            self._reference.key,
            self._request.dtype_str,
            self._request.tf32,
            str(self._request.num_perf_trials),
        )
        if key not in self._baselines:
            self._clock("reference", Stage.TIMING.value)
            inputs = self._reference.inputs("timing")
            samples = self._reference.measure_ms(inputs, self._request.num_perf_trials, "timing")
            self._baselines[key] = timing.summarise(samples).mean
        return self._baselines[key], "measured"

    def _samples(self, answer: dict[str, Any]) -> list[float]:
        samples = answer.get("samples_ms")
        usable = (
            isinstance(samples, list)
            and len(samples) == self._request.num_perf_trials
            and all(isinstance(ms, float) and math.isfinite(ms) and ms > 0 for ms in samples)
        )
        if not usable:
            raise PlayerGone(Stage.TIMING, "it answered with times that cannot be")
        assert isinstance(samples, list)
        return samples

    def _share(self, inputs: list[Any]) -> tuple[Arena, Any]:
        try:
            arena, parcel = pack(inputs, cuda=self._cuda)
        except trees.UnsupportedTree as error:
            raise ReferenceFailed(f"get_inputs() gives {error}, which cannot be judged") from error
        self._arenas.append(arena)
        return arena, parcel

    def _ask(self, stage: Stage, order: Order | None, arenas: list[Arena]) -> dict[str, Any]:
        """Give an order, wait for the answer on the candidate's time."""
        self._clock("candidate", stage.value)
        try:
            if order is not None:
                fds = [fd for arena in arenas for fd in arena.fds]
                self._player.send(self._pickle(order), fds)
            answer, _ = self._player.receive_json()
        except ChannelClosed as error:
            raise PlayerGone(stage, "") from error
        except FrameError as error:
            raise PlayerGone(stage, f"it answered with {error}") from error
        if "failed" in answer:
            self._clock("reference", stage.value)
            failure = Failure.from_claim(stage, answer["failed"])
            metadata = feedback.of_failure(failure, self._folder)
            raise _Failed(failure.status, metadata, failure)
        return answer

    def _pickle(self, order: Order) -> bytes:
        sent = io.BytesIO()
        try:
            _Sender(sent).dump(order)
            return sent.getvalue()
        except Exception as error:
            reason = f"get_init_inputs() gives what cannot be sent to a candidate: {error}"
            raise ReferenceFailed(reason) from error

    def _holding(self, *, exclusive: bool) -> AbstractContextManager[None]:
        self._clock("none", "")
        return self._lock.hold(exclusive=exclusive)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]} [...]"
