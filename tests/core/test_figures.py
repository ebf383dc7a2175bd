"""Prompts are compared without their measured figures, and nothing else is left out."""

from __future__ import annotations

import pytest

from adaexplore.core.text.figures import first_difference, without_figures


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("passed, 1.234x (0.5 ms, reference 12 ms)", "passed, #x (# ms, reference # ms)"),
        ("One call: 1.2e+04 us of GPU time, 87 us in all", "One call: # us of GPU time, # us in all"),
        (
            "- 63%, 9 us, 3x relu: 32 registers, occupancy 50%",
            "- #%, # us, 3x relu: 32 registers, occupancy #%",
        ),
        ("(0.4 %) are wrong, largest error 1e-07.", "(# %) are wrong, largest error #."),
        ("  [0, 3] got -0.25, want 1.5", "  [0, 3] got -#, want #"),
        ("compile in line 12: BLOCK = 128 of 3 sets", "compile in line 12: BLOCK = 128 of 3 sets"),
        ("PyTorch 2.11.0, sm_90, tile128x1.5x, v1.5", "PyTorch 2.11.0, sm_90, tile128x1.5x, v1.5"),
        ("12 msgs, 3 samples", "12 msgs, 3 samples"),
    ],
)
def test_only_decimals_and_times_are_figures(text: str, left: str) -> None:
    assert without_figures(text) == left


PLAIN = "scale = 0.5\nVerdict: passed, #x (# ms)\nEdit kernel 1"
NOW = "scale = 0.5\nVerdict: passed, 1.234x (0.5 ms)\nEdit kernel 1"


@pytest.mark.parametrize(
    ("earlier", "line"),
    [
        (NOW, None),
        (NOW.replace("1.234x (0.5", "1.25x (12"), None),
        (NOW.replace("scale = 0.5", "scale = 0.6"), 1),
        (NOW.replace("passed", "wrong"), 2),
        (NOW.replace("1.234x", "fast"), 2),
        (NOW.replace("kernel 1", "kernel 2"), 3),
        (NOW + "\n", 4),
        (NOW.rpartition("\n")[0], 3),
        ("", 1),
    ],
)
def test_first_difference_ignores_measured_figures_only(earlier: str, line: int | None) -> None:
    assert first_difference(earlier, NOW, PLAIN) == line


def test_order_of_lines_with_figures_does_not_count() -> None:
    kernels = "first\n- 51%, 9.1 us add\n- 49%, 8.9 us mul\nlast 0.5"
    swapped = "first\n- 52%, 9.2 us mul\n- 48%, 8.8 us add\nlast 0.5"
    plain = "first\n- #%, # us mul\n- #%, # us add\nlast 0.5"
    assert first_difference(kernels, swapped, plain) is None
    assert first_difference(kernels.replace("mul", "div"), swapped, plain) == 2
    assert first_difference(kernels.replace("last 0.5", "last 0.6"), swapped, plain) == 4
