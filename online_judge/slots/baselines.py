"""Reference times: recorded ones, and those measured on one device without a candidate."""

import json
import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from adaexplore.core.judging import recorded_times
from adaexplore.core.text.identity import text_digest
from adaexplore.core.wire import EvaluationRequest
from online_judge.protocol.measurement import CleanMs

log = logging.getLogger(__name__)

FILE_NAME = "baseline_time_torch.json"
_MOST = 10_000
_TRY_AGAIN_S = 120.0
"""Seconds before a reference is timed again after the GPU was not free."""
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


def recorded_ms(
    root: Path, request: EvaluationRequest, versions: Mapping[str, str], hardware: Collection[str]
) -> float | None:
    """Read the mean in ms, ``<root>/<gpu_name>/baseline_time_torch.json["level<level>"]["<id>_..."]``.

    None if a name is missing, nothing is recorded, or the file cannot be understood. Entries that state
    conditions (the release's do not) count only if these are those of the request and of a judge with
    ``versions`` on ``hardware``.
    """
    gpu_name, level, problem_id = request.gpu_name, request.level, request.problem_id
    if not gpu_name or not level or not problem_id:
        return None
    if Path(gpu_name).name != gpu_name or gpu_name in (".", ".."):
        return None

    def fits(entry: Mapping[str, Any]) -> bool:
        if "reference" not in entry:
            return True
        source, hidden = request.original_model_src, request.hidden_workloads
        wanted = recorded_times.conditions(source, hidden, request.baseline, request.dtype_str, request.tf32)
        same = all(entry.get(key) == value for key, value in wanted.items())
        built = all(versions.get(part) == version for part, version in entry["versions"].items())
        return same and built and set(hardware) == {entry["hardware"]}

    path = root / gpu_name / FILE_NAME
    try:
        levels = _read(path, path.stat().st_mtime_ns)
        for name, entry in levels.get(f"level{level}", {}).items():
            if name.startswith(f"{problem_id}_") and fits(entry):
                mean = float(entry["mean"])
                return mean if math.isfinite(mean) and mean > 0 else None
    except FileNotFoundError:
        return None
    except _UNREADABLE as error:
        log.warning("%s cannot be used as a baseline: %s", path, error)
    return None


@lru_cache(maxsize=8)
def _read(path: Path, modified_ns: int) -> dict[str, Any]:
    """Read the file of this time: each job asks for it, and parsing takes many milliseconds."""
    levels: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return levels


class CleanTimes:
    """Milliseconds of references on one device; outlives the evaluators that measure them; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ms: OrderedDict[str, CleanMs] = OrderedDict()
        self._tried: dict[str, float] = {}  # when a time could not be had

    @staticmethod
    def key(request: EvaluationRequest, workload: int = 0) -> str:
        """Return the key of a time: a hash of problem, workload, seed, precision, direction and baseline."""
        problem = (request.original_model_src, request.hidden_workloads, workload)
        kind = (request.dtype_str, request.tf32, request.baseline, request.direction, request.seed_num)
        return text_digest(repr((*problem, *kind)))

    def get(self, key: str) -> CleanMs | None:
        with self._lock:
            return self._ms.get(key)

    def is_wanted(self, key: str) -> bool:
        """Return True if a time is not known, and could be had when it was last measured or some time ago."""
        with self._lock:
            tried = self._tried.get(key, -math.inf)
            return key not in self._ms and time.monotonic() - tried > _TRY_AGAIN_S

    def note(self, key: str, ms: CleanMs | None, *, replaces: bool = False) -> None:
        """Keep reported times if they are valid, and the first ones or ``replaces`` is True."""
        with self._lock:
            if ms is None or not all(math.isfinite(each) and each > 0 for each in ms):
                if len(self._tried) >= _MOST:
                    self._tried.clear()
                self._tried[key] = time.monotonic()
                return
            self._tried.pop(key, None)
            if replaces or key not in self._ms:
                self._ms[key] = ms
            while len(self._ms) > _MOST:
                self._ms.popitem(last=False)
