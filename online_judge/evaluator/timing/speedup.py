"""Turn samples of both sides into a speedup with its uncertainty."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

import numpy

from online_judge.protocol.measurement import Times

RESAMPLES = 400
CONFIDENCE = 0.95
TRIM = 0.05


def summarise(samples_ms: Sequence[float]) -> Times:
    ordered = sorted(samples_ms)
    cut = int(len(ordered) * TRIM)
    kept = ordered[cut : len(ordered) - cut]
    median = statistics.median(ordered)
    return Times(
        mean=statistics.fmean(kept),
        median=median,
        std=statistics.stdev(kept) if len(kept) > 1 else 0.0,
        min=ordered[0],
        max=ordered[-1],
        p10=quantile(ordered, 0.1),
        p90=quantile(ordered, 0.9),
        mad=statistics.median(abs(value - median) for value in ordered),
        num_trials=len(ordered),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Interpolate linearly between the two nearest of the ordered values."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def interval(
    numerators: Sequence[Sequence[float]], denominators: Sequence[Sequence[float]], rng: random.Random
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the ratio of medians, drawing paired rounds, not samples.

    The percentile bootstrap over blocks (Efron and Tibshirani, An Introduction to the Bootstrap, ch. 13):
    samples of one round share its clocks and temperature, so they are not independent.
    """
    rounds = len(numerators)
    drawn = numpy.array([rng.choices(range(rounds), k=rounds) for _ in range(RESAMPLES)])
    times = (drawn[:, :, None] == numpy.arange(rounds)).sum(axis=1)
    ratios = sorted((_medians(numerators, times) / _medians(denominators, times)).tolist())
    rest = (1 - CONFIDENCE) / 2
    return quantile(ratios, rest), quantile(ratios, 1 - rest)


def _medians(parts: Sequence[Sequence[float]], times: numpy.ndarray) -> numpy.ndarray:
    """Return the medians of all samples of draws; part ``p`` occurs ``times[draw, p]`` times in each."""
    samples = numpy.concatenate([numpy.asarray(part) for part in parts])
    owners = numpy.repeat(numpy.arange(len(parts)), [len(part) for part in parts])
    order = numpy.argsort(samples, kind="stable")
    ranks = numpy.cumsum(times[:, owners[order]], axis=1)
    total = ranks[:, -1:]
    ordered = samples[order]
    below = numpy.argmax(2 * ranks >= total, axis=1)
    above = numpy.argmax(2 * ranks > total, axis=1)
    medians: numpy.ndarray = (ordered[below] + ordered[above]) / 2
    return medians


def spread(numerators: Sequence[Sequence[float]], denominators: Sequence[Sequence[float]]) -> float:
    """Return the relative standard error of the mean ratio of paired rounds; infinite below three."""
    if len(numerators) < 3:
        return math.inf
    ratios = [
        statistics.median(top) / statistics.median(bottom)
        for top, bottom in zip(numerators, denominators, strict=True)
    ]
    return statistics.stdev(ratios) / math.sqrt(len(ratios)) / statistics.fmean(ratios)
