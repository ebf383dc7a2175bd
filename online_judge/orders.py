"""What a referee asks of its player; the answers are JSON objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adaexplore.core.wire import DtypeName
from online_judge.evaluation.arenas import Parcel


@dataclass(frozen=True)
class Construct:
    """Build ``ModelNew``; the weights, a flat dict, come in one arena.

    With ``load`` they are copied into the module where every name and shape is the same.
    """

    load: bool
    init_inputs: Any
    weights: Parcel
    seed: int
    dtype: DtypeName


@dataclass(frozen=True)
class Forward:
    """Call the model once and copy its outputs into the second arena, leaf by leaf."""

    inputs: Parcel
    outputs: Parcel
    seed: int


@dataclass(frozen=True)
class Measure:
    """Time the model on these inputs."""

    inputs: Parcel
    trials: int
    seed: int


Order = Construct | Forward | Measure
