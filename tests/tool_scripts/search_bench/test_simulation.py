import math
import random

import pytest

from adaexplore.search.build import build_policy
from adaexplore.search.linear import IndependentSampling
from tool_scripts.search_bench.environment import Outcome
from tool_scripts.search_bench.figures import gain, in_flight_figures
from tool_scripts.search_bench.landscapes import landscapes
from tool_scripts.search_bench.policies import PAPER_L2
from tool_scripts.search_bench.simulation import Prices, Race, Reached, Simulation

FIXED = Prices(call_s=60.0, call_sigma=0.0, evaluation_s=4.0, call_usd=1.0, gpu_hour_usd=900.0)


class Climb:
    """Every candidate is a tenth faster than the one before."""

    name, top = "climb", 10.0

    def small(self, parent, rng):
        return Outcome(True, True, parent.speedup + 0.1, parent.speedup + 0.1)

    def large(self, context, rng):
        return Outcome(True, True, 1.1, 1.1)


def simulate(in_flight, prices=FIXED, steps=8, environment=None, policy=None):
    policy = build_policy("MCTS", PAPER_L2) if policy is None else policy
    return Simulation(policy, environment or Climb(), 1, prices, in_flight).run(steps)


def test_sequential_step_takes_a_call_and_evaluation():
    run = simulate(1)
    assert [point.time_s for point in run] == pytest.approx([64.0 * step for step in range(1, 9)])
    assert run[-1].usd == pytest.approx(8 * (1.0 + 1.0))


def test_calls_overlap_and_evaluations_queue_for_the_gpu():
    assert [point.time_s for point in simulate(4, steps=4)] == pytest.approx([64.0, 68.0, 72.0, 76.0])
    two = Prices(call_s=60.0, call_sigma=0.0, evaluation_s=4.0, gpus=2)
    assert [point.time_s for point in simulate(4, two, steps=4)] == pytest.approx([64.0, 64.0, 68.0, 68.0])


def test_a_straggler_does_not_hold_up_the_others():
    class Straggling(Climb):
        def large(self, context, rng):
            calls = 1.0 if self.first else 100.0
            self.first = True
            return Outcome(True, True, 1.1, 1.1, calls=calls)

        first = False

    run = simulate(2, steps=9, environment=Straggling(), policy=IndependentSampling(PAPER_L2))
    assert run[7].time_s < 700
    assert run[8].time_s > 6000


def test_steps_are_counted_in_order_of_return():
    run = simulate(3, Prices(), steps=30, environment=landscapes()[0])
    assert [point.time_s for point in run] == sorted(point.time_s for point in run)
    assert len(run) == 30


def test_the_same_seed_is_the_same_search():
    environment = landscapes()[1]
    assert simulate(4, Prices(), 40, environment) == simulate(4, Prices(), 40, environment)


@pytest.mark.parametrize("landscape", landscapes(), ids=lambda item: item.name)
def test_designed_landscapes_stay_within_their_top(landscape):
    rng = random.Random(2)
    found = [landscape.large([], rng) for _ in range(5)]
    for _ in range(300):
        found.append(landscape.small(rng.choice(found), rng))
        found.append(landscape.large([item for item in found if item.correct][-3:], rng))
    assert max(item.true_speedup for item in found) <= landscape.top + 1e-9
    assert {item.correct for item in found} == {True, False}


def test_single_seed_environments_still_give_an_interval():
    def race(*speedups):
        return Race(tuple((Reached(1.0, 1.0, speedup),) for speedup in speedups), (1.0,) * len(speedups))

    found = gain(race(1.2, 1.5, 2.0), race(1.5, 1.2, 1.3), groups=[0, 1, 2], step=1)
    assert found["low"] < found["gain"] < found["high"]


def curve(seconds, *speedups):
    """One search whose steps end ``seconds`` after each other; 1.0 is no gain, e the whole."""
    points = (Reached(seconds * step, 0.0, math.e**share) for step, share in enumerate(speedups, start=1))
    return Race((tuple(points),), (1.0,))


def test_times_faster_compares_first_times_of_equal_gain():
    several = curve(15.0, 0.0, 0.2, 0.4, 0.6)
    rising, early = curve(60.0, 0.1, 0.2, 0.3, 0.4), curve(60.0, 0.1, 0.4, 0.4, 0.4)
    assert in_flight_figures(rising, several, 4, [0], 4)["times_faster"] == pytest.approx(240 / 45, abs=1e-3)
    assert in_flight_figures(early, several, 4, [0], 4)["times_faster"] == pytest.approx(120 / 45, abs=1e-3)
    assert in_flight_figures(curve(60.0, 0.7), several, 4, [0], 1)["times_faster"] is None


def test_loss_per_sample_compares_equal_step_counts():
    found = in_flight_figures(curve(60.0, 0.2, 0.5), curve(15.0, 0.1, 0.4, 0.6), 4, [0], 2)
    assert found["loss_per_sample"] == found["loss_low"] == found["loss_high"] == pytest.approx(0.2)
    assert found["times_faster"] == pytest.approx(120 / 45, abs=1e-3)
