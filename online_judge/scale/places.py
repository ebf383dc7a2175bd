"""The places of a cluster's workers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from online_judge.common.cores import ANY_CORE, Cores, share_out
from online_judge.settings import JudgeDevice


@dataclass(frozen=True)
class Place:
    """One worker's place: a GPU of a machine, or the CPUs of one."""

    node: str  # Ray's id of the machine; a new one each time it joins
    host: str
    gpu: bool
    index: int
    share: int  # number of workers of the machine

    def cores(self, present: Collection[int]) -> Cores:
        """Return the cores of the worker's processes, without timing cores of other workers there."""
        return share_out(present, range(self.share))[self.index] if self.gpu else ANY_CORE


def decided(nodes: Sequence[Mapping[str, Any]], wanted: JudgeDevice) -> JudgeDevice:
    """Return ``cuda`` for ``auto`` if a living node has a GPU. Keep the result: jobs wait for a lost GPU."""
    seen = any(node["Alive"] and node["Resources"].get("GPU", 0) >= 1 for node in nodes)
    return "cuda" if wanted == "auto" and seen else wanted


def places(nodes: Sequence[Mapping[str, Any]], device: JudgeDevice) -> list[Place]:
    """Return a place for each GPU of the living nodes of ``ray.nodes()``; without ``cuda`` one per node."""
    on_gpu = device == "cuda"
    return [
        Place(node["NodeID"], node["NodeManagerHostname"], on_gpu, index, count)
        for node in nodes
        if node["Alive"]
        for count in [int(node["Resources"].get("GPU", 0)) if on_gpu else 1]
        for index in range(count)
    ]
