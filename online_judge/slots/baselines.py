"""Recorded reference times."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path

log = logging.getLogger(__name__)

FILE_NAME = "baseline_time_torch.json"


def recorded_ms(root: Path, gpu_name: str | None, level: str | None, problem_id: str | None) -> float | None:
    """The recorded mean in ms, ``<root>/<gpu_name>/baseline_time_torch.json["level<level>"]["<id>_..."]``.

    None where a name is missing, nothing is recorded, or the file cannot be understood.
    """
    if not gpu_name or not level or not problem_id:
        return None
    if Path(gpu_name).name != gpu_name or gpu_name in (".", ".."):
        return None
    path = root / gpu_name / FILE_NAME
    try:
        problems = json.loads(path.read_text(encoding="utf-8")).get(f"level{level}", {})
        for name, entry in problems.items():
            if name.startswith(f"{problem_id}_"):
                mean = float(entry["mean"])
                return mean if math.isfinite(mean) and mean > 0 else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s cannot be used as a baseline: %s", path, error)
    return None
