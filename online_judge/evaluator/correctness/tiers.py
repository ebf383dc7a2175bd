"""Grade the precision of an output: its error against an oracle, compared with PyTorch's own error.

Errors are measured in units of the oracle's spread (its standard deviation), so that an output of small
variation cannot hide them. Errors are compared with these estimates:

* summing ``n`` terms one after another in a precision of unit ``ulp`` gives a relative error of about
  ``0.12 * ulp * sqrt(n)`` if rounding errors are independent (Higham, Accuracy and Stability of
  Numerical Algorithms, 2nd ed., section 2.8 and chapter 4; the factor is the root mean square of one
  rounding, 0.72 / sqrt(12) ulp, over a growing partial sum); tree sums stay below that;
* rounding both operands of a product to ``t`` bits of mantissa gives a relative error of each product
  of about ``0.6 * 2**-t`` and, where the terms of a sum have random signs, of the whole sum: 2.9e-4
  for TF32 (10 bits) and 2.3e-3 for bfloat16 (7 bits);
* hardware that drops bits instead of rounding also shrinks each product by about ``0.7 * 2**-t``: this is
  a common factor of the output, not noise.

Tiers ``tf32`` and ``half`` allow 1.3 times the error of the reference with the operands of its products
rounded, see :mod:`online_judge.evaluator.correctness.oracles`; the constants here apply if that is
impossible.

Operands in float16 reach ``tf32``: they have the same mantissa, within the range of float16.
"""

import math
from collections.abc import Iterable
from typing import Literal

from adaexplore.core.environment import PrecisionTest
from adaexplore.core.wire import Tier
from online_judge.checks.facts.precision import NO_ERROR, SINGLE_ULP, TIERS, Error, Limit, Limits

OracleKind = Literal["fp64", "fp32"]

# an error up to this many times eager's own counts as the same precision
_MARGIN = 4.0
# the same if eager's result is itself rounding noise, which varies more with the order of operations
_NOISE_MARGIN = 64.0
_NOISE = 0.1
# floors of strict, in ulp of a typical element; for a sum of n terms sqrt(n) / _STEPS
_SINGLE_FLOOR = 4.0
_HALF_FLOOR = 0.25
_STEPS = 20.0
# an oracle in single precision has an error of its own; it is negligible beside the spacing of float8
_SINGLE_ORACLE = 4.0
_FLOAT8_ULP = 2**-4
# the largest of many normal errors, in units of their root mean square
_TAIL = 8.0
# Triton's TF32 kernels had 0.93 to 1.01 times the emulated error (rms and peak), bfloat16 operands 1.6 to 4.1
EMULATION_MARGIN = 1.3


MANTISSA_BITS: dict[Tier, int] = {"tf32": 10, "half": 7}
"""Bits of the operands of an emulated reference: TF32 and bfloat16."""
# largest noise and drift of one product, if the reference cannot be emulated
_CONSTANTS: dict[Tier, tuple[float, float]] = {"tf32": (1e-3, 3e-3), "half": (1e-2, 2e-2)}


def stated(sets: int) -> PrecisionTest:
    """Return the numbers of the precision test of the first ``sets`` input sets, for clients."""
    return PrecisionTest(
        sets=sets,
        strict_times=_MARGIN,
        strict_floor_ulp=_MARGIN * _SINGLE_FLOOR,
        rounded_times=EMULATION_MARGIN,
        mantissa_bits=MANTISSA_BITS,
        noise={tier: noise for tier, (noise, _) in _CONSTANTS.items()},
    )


def strict_limit(eager: Error, *, depth: float = 1.0, oracle: OracleKind = "fp64") -> Limit:
    """Return four times the error of PyTorch, or of a careless summation order.

    ``eager`` is the error of the reference in the task's precision, TF32 off; ``depth`` the terms of the
    longest sum, see :class:`online_judge.evaluator.costs.Cost`.
    """
    margin = _NOISE_MARGIN if eager.rms > _NOISE else _MARGIN
    ulps = max(_SINGLE_FLOOR, math.sqrt(depth) / _STEPS) if eager.ulp <= SINGLE_ULP else _HALF_FLOOR
    floor = ulps * eager.ulp * (_SINGLE_ORACLE if oracle == "fp32" and eager.ulp < _FLOAT8_ULP else 1.0)
    return Limit(
        rms=margin * max(eager.rms, floor * eager.size),
        peak=margin * max(eager.peak, floor * max(_TAIL * eager.size, eager.top)),
    )


def emulated_limit(strict: Limit, errors: Iterable[Error]) -> Limit:
    """Return 1.3 times the largest of the errors of emulated references, and no less than ``strict``.

    Truncated operands shrink every product, and a chain of products adds this up, while rounding to bfloat16
    averages out. So the part that no common factor explains has its own limit.
    """
    found = list(errors)
    return Limit(
        rms=max([strict.rms, *(EMULATION_MARGIN * each.rms for each in found)]),
        peak=max([strict.peak, *(EMULATION_MARGIN * each.peak for each in found)]),
        noise=max([strict.rms, *(EMULATION_MARGIN * each.noise for each in found)]),
    )


def constant_limit(tier: Tier, strict: Limit, eager: Error, lossy: Error | None = None) -> Limit:
    """Return the limit of a tier if the reference cannot be emulated.

    It allows the rounding of the operands of one product, or twice what PyTorch itself loses: ``eager`` is
    the error of the reference with TF32 off, ``lossy`` with TF32 on, if known.
    """
    most = lossy or NO_ERROR
    noise, drift = _CONSTANTS[tier]
    wide_noise = max(strict.rms, noise, 2 * most.noise)
    wide_drift = max(strict.rms, drift, 2 * most.drift)
    peak = max(strict.peak, _TAIL * wide_noise + noise * eager.top, 2 * most.peak) + wide_drift * eager.top
    rms = math.hypot(wide_noise, wide_drift * eager.size)  # of noise and drift together
    return Limit(rms, peak, wide_noise, wide_drift)


def reached(candidate: Error, eager: Error, limits: Limits) -> Tier:
    """Return the strictest tier whose limit allows the candidate's error; ``legacy`` if none does.

    No tier is reached if more elements than with the reference (``eager``) are finite on one side only.
    """
    if candidate.odd > eager.odd:
        return "legacy"
    return next((tier for tier in TIERS if tier in limits and limits[tier].allows(candidate)), "legacy")
