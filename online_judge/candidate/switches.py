"""Global switches of torch that change results or times, and what a candidate did to them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Switch:
    read: Callable[[], Any]
    write: Callable[[Any], object]


def _attribute(owner: Any, name: str) -> _Switch:
    return _Switch(lambda: getattr(owner, name), lambda value: setattr(owner, name, value))


def _switches() -> dict[str, _Switch]:
    backends = torch.backends
    attributes: list[tuple[str, Any, str]] = [
        # fp32_precision is the newer name; the older ones cannot be read while they disagree with it
        ("torch.backends.fp32_precision", backends, "fp32_precision"),
        ("torch.backends.cuda.matmul.fp32_precision", backends.cuda.matmul, "fp32_precision"),
        ("torch.backends.cudnn.fp32_precision", backends.cudnn, "fp32_precision"),
        *(
            (f"torch.backends.cudnn.{part}.fp32_precision", getattr(backends.cudnn, part), "fp32_precision")
            for part in ("conv", "rnn")
            if hasattr(backends.cudnn, part)
        ),
        *(
            (f"torch.backends.cuda.matmul.{name}", backends.cuda.matmul, name)
            for name in (
                "allow_tf32",
                "allow_fp16_accumulation",
                "allow_fp16_reduced_precision_reduction",
                "allow_bf16_reduced_precision_reduction",
            )
        ),
        *(
            (f"torch.backends.cudnn.{name}", backends.cudnn, name)
            for name in ("allow_tf32", "enabled", "benchmark", "deterministic")
        ),
    ]
    switches = {label: _attribute(owner, name) for label, owner, name in attributes}
    switches["torch.float32_matmul_precision"] = _Switch(
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    )
    switches["default dtype"] = _Switch(torch.get_default_dtype, torch.set_default_dtype)
    switches["default device"] = _Switch(_default_device, torch.set_default_device)
    switches["gradients"] = _Switch(torch.is_grad_enabled, torch.set_grad_enabled)
    switches["deterministic algorithms"] = _Switch(
        lambda: (torch.are_deterministic_algorithms_enabled(), _warns_only()),
        lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
    )
    switches["CPU threads"] = _Switch(torch.get_num_threads, torch.set_num_threads)
    switches["inference mode"] = _Switch(torch.is_inference_mode_enabled, _leave)
    for device in ("cuda", "cpu"):
        switches[f"autocast on {device}"] = _Switch(
            lambda device=device: torch.is_autocast_enabled(device),  # type: ignore[misc]
            lambda value, device=device: torch.set_autocast_enabled(device, value),  # type: ignore[misc]
        )
    return switches


class GlobalFlags:
    """The switches' values at one moment."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    @classmethod
    def take(cls) -> GlobalFlags:
        """Read all of them."""
        return cls({name: _read(switch) for name, switch in _switches().items()})

    def changes(self) -> list[str]:
        """One line for each switch that stands differently now, with both values."""
        now = GlobalFlags.take()._values
        return [f"{name}: {old} -> {now[name]}" for name, old in self._values.items() if now[name] != old]

    def restore(self) -> None:
        """Set those that differ to what they were; older names first, since they write the newer ones."""
        for name, switch in reversed(_switches().items()):
            old = self._values[name]
            if _read(switch) != old:
                try:
                    switch.write(old)
                except (RuntimeError, TypeError, ValueError) as error:
                    log.warning("cannot set %s back to %s: %s", name, old, error)


def _read(switch: _Switch) -> Any:
    try:
        return switch.read()
    except (RuntimeError, AttributeError):  # older and newer names disagree, or this version has none
        return "unreadable"


def _default_device() -> str | None:
    """What ``torch.set_default_device`` was given; None where nothing was."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else str(context.device)


def _warns_only() -> bool:
    return bool(torch.is_deterministic_algorithms_warn_only_enabled())


def _leave(value: Any) -> None:
    """Inference mode ends with its block; it cannot be switched."""
