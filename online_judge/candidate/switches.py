"""Global switches of torch that change results or times, and a candidate's changes to them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Switch:
    read: Callable[[], object]
    write: Callable[[Any], object]


def _switches() -> dict[str, _Switch]:
    backends, cudnn, matmul = torch.backends, torch.backends.cudnn, torch.backends.cuda.matmul
    reduced = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    attributes: list[tuple[str, object, tuple[str, ...]]] = [
        # fp32_precision is the newer name; older names raise while they disagree with it
        ("torch.backends", backends, ("fp32_precision",)),
        ("torch.backends.cuda.matmul", matmul, ("fp32_precision",)),
        ("torch.backends.cudnn", cudnn, ("fp32_precision",)),
        ("torch.backends.cudnn.conv", cudnn.conv, ("fp32_precision",)),
        ("torch.backends.cudnn.rnn", cudnn.rnn, ("fp32_precision",)),
        ("torch.backends.cuda.matmul", matmul, ("allow_tf32", "allow_fp16_accumulation", *reduced)),
        ("torch.backends.cudnn", cudnn, ("allow_tf32", "enabled", "benchmark", "deterministic")),
    ]
    return {
        **{
            f"{label}.{name}": _Switch(partial(getattr, owner, name), partial(setattr, owner, name))
            for label, owner, names in attributes
            for name in names
        },
        "torch.float32_matmul_precision": _Switch(
            torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
        ),
        "default dtype": _Switch(torch.get_default_dtype, torch.set_default_dtype),
        "default device": _Switch(_default_device, torch.set_default_device),
        "gradients": _Switch(torch.is_grad_enabled, torch.set_grad_enabled),
        "deterministic algorithms": _Switch(
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
        ),
        "CPU threads": _Switch(torch.get_num_threads, torch.set_num_threads),
        # ends with its block; cannot be switched
        "inference mode": _Switch(torch.is_inference_mode_enabled, lambda value: None),
        **{
            f"autocast on {device}": _Switch(
                partial(torch.is_autocast_enabled, device), partial(torch.set_autocast_enabled, device)
            )
            for device in ("cuda", "cpu")
        },
    }


class GlobalFlags:
    """The switches' values when it is made."""

    def __init__(self) -> None:
        self._values = {name: _read(switch) for name, switch in _switches().items()}

    def changes(self) -> list[str]:
        """Return one line for each switch with another value now, with both values."""
        now = GlobalFlags()._values
        return [f"{name}: {old} -> {now[name]}" for name, old in self._values.items() if now[name] != old]

    def restore(self) -> None:
        """Restore changed switches; older names first, because they write the newer ones."""
        for name, switch in reversed(_switches().items()):
            old = self._values[name]
            if _read(switch) != old:
                try:
                    switch.write(old)
                except (RuntimeError, TypeError, ValueError) as error:
                    log.warning("cannot set %s back to %s: %s", name, old, error)


def _read(switch: _Switch) -> object:
    try:
        return switch.read()
    except (RuntimeError, AttributeError):  # older and newer names disagree, or this version has none
        return "unreadable"


def _default_device() -> str | None:
    """Return the device of ``torch.set_default_device``; None if unset."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else str(context.device)
