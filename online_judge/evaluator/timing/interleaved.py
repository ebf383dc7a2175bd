"""Interleaved timing of a candidate and its reference: rounds of blocks, one side after the other.

In each round the candidate gets ready, the evaluator writes fresh contents into the shared inputs, sends GO,
and measures the time until the answer. By then every output of the block is in the evaluator's memory.
Elements at hidden places of each output, and some whole outputs, are compared with the reference's outputs
for the same inputs. Outputs are compared after the timing, unless they are too large to keep.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from adaexplore.core.dialects.schema import Tolerance
from adaexplore.core.judging.status import Stage
from online_judge.checks.check import Observation
from online_judge.checks.correctness.changed_inputs import InputsChanged
from online_judge.checks.facts.findings import Difference
from online_judge.checks.timing.side_stream import UnjoinedStream
from online_judge.checks.timing.timed_outputs import TimedOutputLate, TimedOutputWrong
from online_judge.common import cuda_driver
from online_judge.common.modules import zeroed
from online_judge.common.timing import Block
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import comparison
from online_judge.evaluator.dialogue import BlockRefused, CandidateGone, Dialogue
from online_judge.evaluator.timing import clock_check, speedup
from online_judge.evaluator.timing.clock_check import Observed
from online_judge.evaluator.timing.setup import BLOCK_MS, SLOW_MS, WARMUP_S, TimingSetup
from online_judge.protocol.orders import Block as BlockOrder
from online_judge.protocol.orders import Prepare

MIN_ROUNDS = 5
MAX_ROUNDS = 40
MIN_SAMPLES = 20
_CALLS_IN_A_BLOCK = MIN_SAMPLES // MIN_ROUNDS
ENOUGH_MS = 120.0
TARGET_SPREAD = 0.002
_SAMPLED = 4096
_SEED_BITS = 31
_AUDITS = 3
_CLAIMS_OF_LATE_CALLS = 2
"""First rounds in which the candidate may claim that its calls wait for the host."""
_TIES = 1e-3
"""Share of whole numbers that may differ in timed outputs, because rounding decides ties otherwise."""
_KEPT_BYTES = 4 * 2**30
"""Most bytes of whole outputs that are kept until after the timing; larger ones are compared at once."""
_EARLY_ROUNDS = 2
_CLEARLY = 1.1
"""A speedup is clearly below another one if the upper end of its interval times this factor is below it."""
_PLAIN_ROUNDS_AGAIN = 2
_PLAIN_TIMES_AGAIN = 4  # where nothing but the wall time confirms the events
_POSSIBLE_MS = (1e-4, 1e9)  # possible times of a call
_GRAPH_ROUNDS, _MOST_GRAPH_ROUNDS = 3, 12
_SINGLE_ROUNDS, _MOST_SINGLE_ROUNDS = 2, 5
_MOST_UNEVEN = 2.0
"""How uneven seeded calls may be, at most, if the reference's are; the candidate may slow these."""
_COLD = 2.0
"""A seeded call alone may take longer by this many times its usual time, at most."""
_LONGER = 1.15
"""A call alone that takes this many times as long is repeated, so that a disturbance does not count."""


@dataclass
class Side:
    """Times of one side's blocks in milliseconds, one entry for each round."""

    calls: list[list[float]] = field(default_factory=list)
    seen: list[Observed] = field(default_factory=list)
    single: list[Observed] = field(default_factory=list)  # blocks of one call, where others have more
    plain: list[float] = field(default_factory=list)
    graph: list[float] = field(default_factory=list)
    graph_calls: int = 0  # of a replayed block
    seeding_ms: float = 0.0  # to seed before a call, no part of its time
    forwards: list[float] = field(default_factory=list)
    unmarked: int = 0

    @property
    def samples(self) -> list[float]:
        return [call for part in self.calls for call in part]

    @property
    def gpu_ms(self) -> float:
        return statistics.median(self.samples)

    @property
    def forward_ms(self) -> float | None:
        """Median of the forward passes; None if calls run no backward passes."""
        return statistics.median(self.forwards) if self.forwards else None

    @property
    def mean_ms(self) -> float:
        """Median over the rounds of the mean of their marked calls."""
        return statistics.median(statistics.fmean(part) for part in self.calls)

    @property
    def unevenness(self) -> float:
        """The mean relative to the median: large if a few calls took much longer than the others."""
        return self.mean_ms / self.gpu_ms

    @property
    def e2e_ms(self) -> float:
        """Wall time of a call, its copied outputs included, in the fastest plain block."""
        return min(self.plain)

    def add(
        self, seen: Observed, order: BlockOrder, calls: int | None = None, *, single: bool = False
    ) -> None:
        """Add a block of ``order``, of so many calls if not as many as ordered."""
        count = order.calls if calls is None else calls
        if single:
            self.unmarked += 1
            self.single.append(seen)
            return
        if order.kind == "marked":
            self.seen.append(seen)
            self.calls.append(seen.block.calls)
            self.forwards += seen.block.forwards
            return
        self.unmarked += count
        if order.kind == "graph":
            self.graph_calls = count
            self.graph.append(seen.wall_ms / count)
        else:
            call_ms = seen.wall_ms / count
            self.plain.append(max(call_ms - self.seeding_ms, min(call_ms, self.gpu_ms)))


@dataclass
class Outcome:
    """Result of the interleaved timing.

    Attributes:
        candidate: its times.
        reference: the baseline's.
        observations: what is wrong with the candidate's timed outputs or calls.
        copy_ms: wall time of copying one call's outputs.
        quiet: whether nobody else used the GPU.
        flushes: L2 flushes before each call.
        seeded: whether each call is seeded; times then include launches, on both sides.
        alone_ms: the baseline's time afterwards, with the candidate stopped; None if it was not needed.
        spent_s: seconds by part: warm-up, marked, single, plain and graph rounds.
        stopped_early: whether the rounds ended because the candidate is clearly slower than the best so far.
    """

    candidate: Side = field(default_factory=Side)
    reference: Side = field(default_factory=Side)
    observations: list[Observation] = field(default_factory=list)
    copy_ms: float = 0.0
    quiet: bool = True
    flushes: int = 0
    seeded: bool = False
    alone_ms: float | None = None
    spent_s: dict[str, float] = field(default_factory=dict)
    stopped_early: bool = False

    @property
    def gpu_s(self) -> float:
        """Seconds that the GPU worked for calls of either side, timed or not; no flushes, no copies."""
        sides = (self.candidate, self.reference)
        return sum(math.fsum(side.samples) + side.gpu_ms * side.unmarked for side in sides) / 1e3

    @property
    def is_launch_bound(self) -> bool:
        """Whether the candidate's calls take longer on the wall than their events explain."""
        return clock_check.launch_bound(self.candidate.gpu_ms, self.candidate.e2e_ms, self.copy_ms)

    @property
    def is_uneven(self) -> bool:
        """Whether a few of the candidate's calls took much longer: the host was slow, or they did the work.

        Where launches are timed, a slow host makes the reference's calls uneven too.
        """
        usual = min(max(self.reference.unevenness, 1.0), _MOST_UNEVEN) if self.seeded else 1.0
        return self.candidate.unevenness > clock_check.RATIO * usual

    def as_in_blocks(self, single_ms: float) -> float:
        """Return what a candidate's call takes within a block of many if it takes ``single_ms`` alone.

        Where launches are timed, they take longer alone, because the CPU's caches have lost their code. The
        reference's call alone shows how much, within limits, because the candidate may slow it.
        """
        if not self.seeded:
            return single_ms
        alone_ms = min(seen.block.calls[0] for seen in self.reference.single)
        colder_ms = max(alone_ms - self.reference.gpu_ms, 0.0) + clock_check.LAUNCH_SLACK_MS
        return single_ms - min(colder_ms, _COLD * self.candidate.gpu_ms)

    def restart(self) -> None:
        """Forget the times so far."""
        for side in (self.candidate, self.reference):
            side.unmarked += len(side.samples)
            side.calls, side.seen, side.forwards = [], [], []


@dataclass(frozen=True)
class _Audit:
    """Outputs of both sides on the same inputs, to compare later: of one call, or elements of a round."""

    round: int
    call: int | None
    got: Sequence[torch.Tensor]
    want: Sequence[torch.Tensor]
    calls: Sequence[int] = ()  # of the rows, if it holds elements of a whole round


class InterleavedTiming:
    """Times one candidate in a setup that is shared with its process."""

    def __init__(
        self,
        dialogue: Dialogue,
        setup: TimingSetup,
        rng: random.Random,
        trials: int,
        tolerance: float | Tolerance,
        cores: tuple[int, ...] = (),
        best_so_far: float = 0.0,
        unwritten: Sequence[torch.Tensor] = (),
    ) -> None:
        """``rng`` makes hidden choices; ``trials`` timed calls are enough; ``cores`` are those of the CPU.

        Timing stops earlier if the speedup is clearly below ``best_so_far``. Elements that are ``unwritten``,
        a mask for each output, are not compared.
        """
        self._dialogue = dialogue
        self._reference = setup.reference
        self._setup = setup
        self._rng = rng
        self._trials = max(trials, MIN_SAMPLES)
        self._tolerance = tolerance
        self._cores = cores
        self._best_so_far = best_so_far
        self._unwritten = [mask.reshape(-1) for mask in unwritten]
        self._audits: list[_Audit] = []
        self._large = 2 * _AUDITS * setup.output_bytes > _KEPT_BYTES

    def run(self) -> Outcome:
        """Time both sides; hold the device exclusively meanwhile."""
        outcome = Outcome(seeded=self._reference.stochastic)
        since = time.monotonic()

        def spent(part: str) -> None:
            nonlocal since
            now = time.monotonic()
            outcome.spent_s[part], since = now - since, now

        self._dialogue.clock("reference", Stage.TIMING.value)
        outcome.reference.unmarked, reference_ms = self._setup.warm_up()
        outcome.candidate.unmarked, candidate_ms = self._warm_candidate_up()
        spent("warm")
        slower_ms = max(reference_ms, candidate_ms)
        flushes = self._setup.flushes(candidate_ms, slower_ms)
        theirs, ours = self._block_calls(candidate_ms, reference_ms, flushes)
        number = 0
        while not self._enough(outcome, slower_ms):
            if len(outcome.candidate.calls) >= _EARLY_ROUNDS and self._is_clearly_slower(outcome):
                outcome.stopped_early = True
                break
            self._round(outcome, number, BlockOrder(theirs, flushes), ours)
            number += 1
            # times of blocks are checked, claims about the warm-up are not
            candidate_ms = min(candidate_ms, outcome.candidate.gpu_ms)
            seen = [outcome.reference.seen[-1]]
            if number <= _CLAIMS_OF_LATE_CALLS:
                seen += outcome.candidate.seen[-1:]
            more = max(
                self._setup.flushes_once_seen(outcome.candidate.gpu_ms, flushes, slower_ms),
                self._setup.more_flushes(flushes, slower_ms, *seen),
            )
            if more > flushes:
                flushes = more
                outcome.restart()
                self.audit(outcome)
            theirs, ours = self._block_calls(candidate_ms, reference_ms, flushes)
        seeding_ms = statistics.median(seen.block.seeding for seen in outcome.reference.seen)
        outcome.candidate.seeding_ms = outcome.reference.seeding_ms = seeding_ms
        spent("marked")
        if theirs > 1 and not outcome.stopped_early:
            most = _MOST_SINGLE_ROUNDS if slower_ms < SLOW_MS else _SINGLE_ROUNDS
            number = self._single_calls(
                outcome, number, max(flushes, self._setup.long_cover(slower_ms)), most
            )
        spent("single")
        number = self._plain_rounds(outcome, number, theirs, ours, 1)
        outcome.copy_ms = self._setup.copy_ms()
        can_replay = not outcome.seeded  # a graph cannot seed between calls
        odd = self._is_odd(outcome)
        if odd and slower_ms < SLOW_MS:
            for _ in range(1 if can_replay or outcome.stopped_early else _PLAIN_TIMES_AGAIN):
                self._setup.wait_for_quiet()  # others may have slowed the host or the GPU
                number = self._plain_rounds(outcome, number, theirs, ours, _PLAIN_ROUNDS_AGAIN)
                if not outcome.is_launch_bound:
                    break
            odd = self._is_odd(outcome)
        spent("plain")
        if odd and can_replay:
            self._replay(outcome, number, theirs, ours)
            spent("graph")
        outcome.flushes = flushes
        return outcome

    def _block_calls(self, candidate_ms: float, reference_ms: float, flushes: int) -> tuple[int, int]:
        """Return how many calls a block of the candidate and one of the reference have.

        The first call of a block finds the other process's data in the CPU's caches. So that most calls do
        not, there are at least ``_CALLS_IN_A_BLOCK`` unless they are long; there are fewer rounds then.
        """
        theirs, ours = (self._setup.block_calls(ms, flushes) for ms in (candidate_ms, reference_ms))
        least = min(_CALLS_IN_A_BLOCK, self._setup.count)
        if theirs < least and candidate_ms <= BLOCK_MS and reference_ms <= SLOW_MS:
            theirs, ours = least, math.ceil(ours * least / theirs)
        if self._reference.returns_state:  # which earlier calls of the block may have changed
            return theirs, theirs
        return theirs, min(ours, theirs)

    def audit(self, outcome: Outcome) -> None:
        """Compare the kept outputs; the device need not be held any more."""
        for kept in self._audits:
            self._compare(outcome, kept)
        self._audits.clear()

    def _compare(self, outcome: Outcome, kept: _Audit) -> None:
        sizes = [held.shape[1] for held in self._setup.own_rows]
        if kept.call is not None:
            kept = replace(kept, got=self._written(kept.got), want=self._written(kept.want))
        for part in self._parts(kept):
            units = self._reference.units(part.want)
            for got, want, unit, size in zip(part.got, part.want, units, sizes, strict=True):
                sampled = kept.call is None and size > _SAMPLED
                found = comparison.difference(got, want, self._tolerance, unit=unit, sampled=sampled)
                if found is not None and not _are_ties(found, want):
                    wrong = TimedOutputWrong(
                        round=part.round,
                        call=part.call,
                        wrong=found.wrong,
                        total=found.total,
                        largest=found.largest,
                    )
                    outcome.observations.append(wrong)
                    return

    def _parts(self, kept: _Audit) -> list[_Audit]:
        """Split elements of a round by call if the problem's tolerance counts the share of wrong ones."""
        if kept.call is not None or not isinstance(self._tolerance, Tolerance):
            return [kept]
        rows = zip(kept.calls, zip(*kept.got, strict=True), zip(*kept.want, strict=True), strict=True)
        return [replace(kept, call=call, got=got, want=want) for call, got, want in rows]

    def _warm_candidate_up(self) -> tuple[int, float]:
        """Warm it up; return the claimed number of calls, and wall milliseconds of the fastest one."""
        setup = self._setup
        order = Prepare(
            inputs=setup.inputs,
            outputs=setup.outputs,
            seed=self._reference.call_seed(setup.name),
            least_s=WARMUP_S,
            cores=self._cores,
        )
        self._leave_memory()
        begin = time.perf_counter()
        answer = self._dialogue.ask(Stage.TIMING, order, setup.shared_tensors)
        took_ms = (time.perf_counter() - begin) * 1e3
        self._dialogue.clock("reference", Stage.TIMING.value)
        calls, best = answer.get("calls"), answer.get("best_ms")
        possible = isinstance(best, float) and _POSSIBLE_MS[0] < best < _POSSIBLE_MS[1]
        if not possible or not isinstance(calls, int) or calls < 1:
            raise CandidateGone(Stage.TIMING, "it answered with times that cannot be")
        return min(calls, int(took_ms / best) + 1), best

    def _enough(self, outcome: Outcome, slower_ms: float) -> bool:
        rounds, samples = len(outcome.candidate.calls), len(outcome.candidate.samples)
        if rounds:  # claims about the warm-up no longer count
            slower_ms = max(outcome.candidate.gpu_ms, outcome.reference.gpu_ms)
        if slower_ms > SLOW_MS:
            return rounds >= MIN_ROUNDS - 2
        if rounds < MIN_ROUNDS or samples < MIN_SAMPLES:
            return False
        if rounds >= MAX_ROUNDS or samples >= self._trials:
            return True
        busy_ms = math.fsum(outcome.candidate.samples)
        spread = speedup.spread(outcome.reference.calls, outcome.candidate.calls)
        return busy_ms > ENOUGH_MS and spread < TARGET_SPREAD

    def _is_clearly_slower(self, outcome: Outcome) -> bool:
        if outcome.reference.gpu_ms / outcome.candidate.gpu_ms * _CLEARLY >= self._best_so_far:
            return False  # the interval takes longer
        sides = outcome.reference.calls, outcome.candidate.calls
        return speedup.interval(*sides, random.Random(0))[1] * _CLEARLY < self._best_so_far

    def _plain_rounds(self, outcome: Outcome, number: int, theirs: int, ours: int, rounds: int) -> int:
        """Run blocks without marks; return the next number."""
        for extra in range(rounds):
            self._round(outcome, number + extra, BlockOrder(theirs, kind="plain"), ours)
        return number + rounds

    def _is_odd(self, outcome: Outcome) -> bool:
        """Return True if the wall time of calls, or a few of them, are longer than the events explain."""
        candidate = outcome.candidate
        return (
            clock_check.Clocks.of(candidate.seen, outcome.reference.seen).disagree
            or outcome.is_uneven
            or outcome.is_launch_bound
        )

    def _single_calls(self, outcome: Outcome, number: int, flushes: int, most: int) -> int:
        """Run blocks of one call, in which nothing can be done for later calls; return the next number."""
        for extra in range(most):
            self._round(outcome, number + extra, BlockOrder(1, flushes), 1, single=True)
            single_ms = clock_check.fastest_ms(outcome.candidate.single, outcome.reference.single)
            longest_ms = _LONGER * outcome.candidate.gpu_ms
            if extra + 1 >= _SINGLE_ROUNDS and outcome.as_in_blocks(single_ms) <= longest_ms:
                break
        return number + extra + 1

    def _replay(self, outcome: Outcome, number: int, theirs: int, ours: int) -> None:
        """Replay blocks as CUDA graphs, without the host; run none if the calls cannot be captured.

        What disturbs a replay makes it longer, so more follow until one confirms the events, each few of them
        once the GPU is quiet.
        """
        side = outcome.candidate
        self._leave_memory()  # a captured graph needs memory of its own
        try:
            for extra in range(_MOST_GRAPH_ROUNDS):
                self._round(outcome, number + extra, BlockOrder(theirs, kind="graph"), ours)
                confirmed = clock_check.confirmed(side.gpu_ms, min(side.graph), outcome.copy_ms)
                if confirmed and extra + 1 >= _GRAPH_ROUNDS:
                    break
                if not confirmed and (extra + 1) % _GRAPH_ROUNDS == 0:
                    self._setup.wait_for_quiet()
        except BlockRefused as refused:
            self._dialogue.clock("reference", Stage.TIMING.value)
            if "unjoined" in str(refused).lower():
                outcome.observations.append(UnjoinedStream())

    def _round(
        self, outcome: Outcome, number: int, order: BlockOrder, ours: int, *, single: bool = False
    ) -> None:
        """Run the candidate on fresh argument lists, then the reference on ``ours`` of them."""
        setup = self._setup
        if outcome.seeded:
            order = replace(order, seed=self._rng.getrandbits(_SEED_BITS))
        sets = sorted(self._rng.sample(range(order.calls), ours))
        compared = sets
        if not (setup.is_eager or self._reference.returns_state):
            compared = sorted(self._rng.sample(sets, min(setup.eager_calls, ours)))
        try:
            self._dialogue.ready_block(order)
        except BlockRefused as refused:
            if order.kind == "graph":
                raise
            raise CandidateGone(Stage.TIMING, "it refused to run a block") from refused
        self._dialogue.clock("reference", Stage.TIMING.value)
        written = self._reference.writes_inputs
        setup.poison(order.calls)
        setup.pool.refresh(whole=written or number == 0)  # warming up showed all of the first ones
        guarded = self._rng.choice(compared)
        wall_ms, claim = self._dialogue.run_block()
        places = self._hidden_places(len(compared))
        rows = torch.tensor(compared, device="cuda")
        received = [held[rows[:, None], some] for held, some in zip(setup.received_rows, places, strict=True)]
        got = self._written(received, places)
        whole = self._rng.choice(compared) if len(outcome.candidate.calls) < _AUDITS else None
        got_whole = [] if whole is None else [self._kept(held[whole]) for held in setup.received_rows]
        self._dialogue.clock("reference", Stage.TIMING.value)
        sums = [costs.checksum(output) for output in got_whole] if self._large else []
        if not written and not setup.pool.is_unchanged(guarded):
            outcome.observations.append(InputsChanged(timed_call=guarded))
        marked = order.kind == "marked"
        try:
            passes = self._reference.direction != "forward"
            block = Block.from_claim(claim, order.calls if marked else 0, passes=passes)
        except ValueError as error:
            raise CandidateGone(Stage.TIMING, f"it answered with {error}") from error
        outcome.candidate.add(Observed(wall_ms, block), order, single=single)
        apart = not setup.is_eager
        copies = {place: setup.pool.copy_of(place) for place in compared} if apart and written else {}
        own_block = setup.reference_block(sets, order.flushes, marked=marked, seed=order.seed)
        outcome.reference.add(own_block, order, ours, single=single)
        if apart:
            setup.pool.put_back(copies)
            setup.write_expected(compared, order.seed)
        own = torch.arange(len(compared), device="cuda")[:, None]
        want = [held[own, some] for held, some in zip(setup.own_rows, places, strict=True)]
        self._audits.append(_Audit(number, None, got, self._written(want, places), compared))
        if whole is not None:
            want_whole = [self._kept(held[compared.index(whole)]) for held in setup.own_rows]
            audit = _Audit(number, whole, got_whole, want_whole)
            if self._large:
                self._compare(outcome, audit)
                if [costs.checksum(output) for output in got_whole] != sums:
                    outcome.observations.append(TimedOutputLate(round=number, call=whole))
            else:
                self._audits.append(audit)

    def _leave_memory(self) -> None:
        """Free what the candidate process may need if the inputs of one call fill the memory."""
        if self._setup.pool.redraws:
            cuda_driver.free_cache_if_scarce()

    def _written(
        self, outputs: Sequence[torch.Tensor], places: Sequence[torch.Tensor] | None = None
    ) -> Sequence[torch.Tensor]:
        """Return outputs, or their elements at ``places``, with 0 in place of elements that are unwritten."""
        if not self._unwritten:
            return outputs
        masks = self._unwritten
        if places is not None:
            masks = [mask[some] for mask, some in zip(masks, places, strict=True)]
        return [zeroed(*pair) for pair in zip(outputs, masks, strict=True)]

    def _kept(self, output: torch.Tensor) -> torch.Tensor:
        """Return a copy of an output; a large one is not copied and lives until the next block."""
        return output if self._large else output.clone()

    def _hidden_places(self, calls: int) -> list[torch.Tensor]:
        """Draw indices of elements for each call and output; all of a small output."""
        generator = torch.Generator("cuda").manual_seed(self._rng.getrandbits(60))
        found = []
        for held in self._setup.own_rows:
            size = held.shape[1]
            if size > _SAMPLED:
                shape = (calls, _SAMPLED)
                found.append(torch.randint(size, shape, generator=generator, device="cuda"))
            else:
                found.append(torch.arange(size, device="cuda").expand(calls, size))
        return found


def _are_ties(found: Difference, want: torch.Tensor) -> bool:
    """Return True if so few whole numbers differ that rounding explains it, as in a near tie of ``topk``.

    Checked calls permit none. Most elements may be alike, such as zeros, and say nothing about work that was
    skipped: only the others count.
    """
    if want.is_floating_point() or want.is_complex():
        return False
    whole = want.reshape(-1).long()
    return found.wrong <= _TIES * int((whole != whole.mode().values).sum())
