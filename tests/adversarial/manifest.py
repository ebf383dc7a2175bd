"""Every way to fool a harness, by number: its fixtures and their expected results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .expectations import Expectation, harmless, noted, refused, rejected, suspected, unseen

Naive = Literal["correct", "fast"]


@dataclass(frozen=True)
class Case:
    """One fixture on one problem.

    Attributes:
        fixture: name of its file.
        cpu: what must become of it without a GPU.
        gpu: what must become of it on a GPU.
        problem: name of the reference's file.
        naive: how a naive harness without a GPU is fooled: it believes the fixture ``correct``, or also five
            times as ``fast`` as the honest twin; None where it takes a GPU or a long-lived harness.
        candidate_first: the naive harness runs the reference after the candidate.
        prelude: a fixture that is judged before.
        fields: further fields of the request.
    """

    fixture: str
    cpu: Expectation
    gpu: Expectation
    problem: str = "gate"
    naive: Naive | None = "correct"
    candidate_first: bool = False
    prelude: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One way to cheat; ``reason`` says which part no fixture tries, and why."""

    number: int
    name: str
    cases: tuple[Case, ...] = ()
    reason: str = ""


TIMELESS = unseen("nothing is timed without a GPU")
SYNCHRONOUS = unseen("streams are simulated: every launch is done when it returns")
LIBRARIES = unseen("there is no CUDA library to reach into")
HANDED_IN_TIME = ("timed_output_wrong", "clock_mismatch", "side_stream")
OWN_WORK = ("no_own_kernel", "decoy_kernel")
TRIVIAL = ("degenerate_problem",)


def _both(fixture: str, expectation: Expectation, **others: Any) -> Case:
    return Case(fixture, expectation, expectation, **others)


ROWS = (
    Row(
        1,
        "verdict forged on standard output",
        (
            _both("r01_forged_stdout_a", refused()),
            _both("r01_forged_stdout_b", refused()),
        ),
    ),
    Row(
        2,
        "verdict channel taken over",
        (
            _both("r02_channel_hijack_a", refused()),
            _both("r02_channel_hijack_b", refused()),
            _both("r02_channel_hijack_c", refused(), naive=None),
        ),
    ),
    Row(
        3,
        "verdict rewritten afterwards",
        (
            _both("r03_late_rewrite_a", refused()),
            _both("r03_late_rewrite_b", refused()),
        ),
    ),
    Row(
        4,
        "clock patched",
        (
            *(
                Case(
                    f"r04_patched_clock_{letter}",
                    suspected("patched_functions"),
                    suspected("patched_functions", *HANDED_IN_TIME, gainless=True),
                    naive="fast",
                )
                for letter in "abc"
            ),
            Case(
                "r04_patched_clock_d",
                TIMELESS,
                harmless(),
                naive=None,
            ),
            Case(
                "r04_patched_clock_e",
                noted("patched_functions", "static_clock", "static_introspection"),
                noted(
                    "patched_functions",
                    "static_clock",
                    "static_introspection",
                    *HANDED_IN_TIME,
                    gainless=True,
                ),
                naive="fast",
            ),
        ),
        reason="what the process says of itself can be silenced: the last one must be noted and gain nothing",
    ),
    Row(
        5,
        "clock patched in native code",
        tuple(
            Case(
                f"r05_native_clock_{letter}",
                LIBRARIES,
                harmless(),
                naive=None,
            )
            for letter in "ab"
        ),
    ),
    Row(
        6,
        "comparison patched",
        (
            _both("r06_patched_comparison_a", refused()),
            _both("r06_patched_comparison_b", refused()),
        ),
    ),
    Row(
        7,
        "work on a side stream",
        tuple(
            Case(f"r07_side_stream_{letter}", SYNCHRONOUS, rejected(*HANDED_IN_TIME), naive=None)
            for letter in "ab"
        ),
    ),
    Row(
        8,
        "work left to a thread",
        (
            Case(
                "r08_deferred_work_a",
                suspected("background_threads"),
                suspected("background_threads", *HANDED_IN_TIME, gainless=True),
            ),
            Case(
                "r08_deferred_work_b",
                suspected("background_threads"),
                suspected("background_threads", *HANDED_IN_TIME, gainless=True),
                naive="fast",
            ),
            Case(
                "r08_deferred_work_c",
                suspected("background_threads", "patched_functions", gainless=True),
                refused(),  # the signal finds its memory gone, and the process dies
            ),
        ),
    ),
    Row(
        9,
        "lazy tensor",
        tuple(
            Case(
                f"r09_lazy_tensor_{letter}",
                suspected("patched_functions", *OWN_WORK, gainless=True),
                suspected("patched_functions", *OWN_WORK, *HANDED_IN_TIME, gainless=True),
                naive="fast",
            )
            for letter in "ab"
        ),
    ),
    Row(
        10,
        "replay by identity",
        (
            _both("r10_replay_by_identity_a", harmless(), naive="fast"),
            _both("r10_replay_by_identity_b", harmless(), naive="fast"),
        ),
    ),
    Row(
        11,
        "replay by content",
        (
            _both("r11_replay_by_content_a", harmless(), naive="fast"),
            _both("r11_replay_by_content_b", harmless(), naive="fast"),
        ),
    ),
    Row(
        12,
        "hidden cache",
        (
            _both("r12_hidden_cache_a", harmless(), naive="fast"),
            _both("r12_hidden_cache_b", harmless(), naive="fast"),
            _both("r12_hidden_cache_c", harmless()),
        ),
    ),
    Row(
        13,
        "phase detection",
        (
            Case("r13_phase_detection_a", refused(), rejected(*HANDED_IN_TIME), naive="fast"),
            Case("r13_phase_detection_b", TIMELESS, harmless(), naive="fast"),
        ),
    ),
    Row(
        14,
        "all calls' work in the first call",
        (
            _both("r14_batch_and_skip_a", harmless(), naive="fast"),
            _both("r14_batch_and_skip_b", harmless(), naive="fast"),
            _both("r14_batch_and_skip_c", harmless(), naive="fast"),
            # where a call leaves most of the GPU idle, all calls together take hardly longer than one
            _both("r14_batch_and_skip_d", harmless(must_pass=True), problem="small_gate"),
        ),
    ),
    Row(
        15,
        "warm-up slowed down",
        (
            _both("r15_slow_warmup_a", harmless(), naive=None),
            _both("r15_slow_warmup_b", harmless(), naive=None),
        ),
    ),
    Row(
        16,
        "expected output stolen",
        (
            _both("r16_stolen_output_a", refused()),
            _both("r16_stolen_output_b", refused()),
        ),
    ),
    Row(
        17,
        "memory scanned",
        (
            _both("r17_memory_scan_a", refused(), naive=None),
            _both("r17_memory_scan_b", refused()),
        ),
    ),
    Row(
        18,
        "reference called",
        (
            _both("r18_recompute_a", suspected("no_own_kernel")),
            _both("r18_recompute_b", suspected("no_own_kernel")),
        ),
    ),
    Row(
        19,
        "memory of before returned",
        (
            _both("r19_stale_memory_a", refused(), naive=None),
            _both("r19_stale_memory_b", harmless(), naive=None),
        ),
    ),
    Row(
        20,
        "inputs changed",
        (
            _both("r20_input_mutation_a", refused(), candidate_first=True),
            _both("r20_input_mutation_b", rejected("inputs_changed")),
            Case("r20_input_mutation_c", refused(), rejected(*HANDED_IN_TIME), naive="fast"),
            Case("r20_input_mutation_d", refused(), rejected(*HANDED_IN_TIME), naive="fast"),
        ),
    ),
    Row(
        21,
        "input returned as output",
        (
            _both("r21_alias_a", suspected("output_aliases_input", "fails_scaled_inputs"), problem="clip"),
            _both("r21_alias_b", suspected("output_aliases_input", "inputs_changed"), problem="clip"),
            _both("r21_alias_c", rejected("inputs_changed"), naive=None),
        ),
    ),
    Row(
        22,
        "NaN as a wildcard",
        (
            _both("r22_nan_wildcard_a", refused()),
            _both("r22_nan_wildcard_b", refused()),
        ),
    ),
    Row(
        23,
        "constant output",
        (
            _both(
                "r23_constant_output_a",
                suspected("fails_scaled_inputs", "fails_shifted_inputs", problem=TRIVIAL),
                problem="row_mean",
            ),
            _both(
                "r23_constant_output_b",
                suspected("fails_scaled_inputs", "fails_shifted_inputs", problem=TRIVIAL),
                problem="squared_loss",
            ),
            _both(
                "r23_constant_output_c",
                suspected("low_precision", problem=TRIVIAL),
                problem="squared_loss",
            ),
        ),
    ),
    Row(
        24,
        "precision dropped",
        (
            _both("r24_precision_drop_a", suspected("low_precision"), problem="projection"),
            _both("r24_precision_drop_b", suspected("low_precision"), problem="projection"),
            _both("r24_precision_drop_c", suspected("low_precision")),
        ),
    ),
    Row(
        25,
        "TF32 on one side",
        (
            Case(
                "r25_tf32_a",
                unseen("the interpreter multiplies in full precision"),
                suspected("low_precision"),
                problem="projection",
            ),
            Case(
                "r25_tf32_b",
                unseen("the library has no TF32 without a GPU, and the switch is put back"),
                suspected("low_precision"),
                problem="projection",
            ),
        ),
    ),
    Row(
        26,
        "global switches flipped",
        (
            _both("r26_global_flags_a", noted("global_flags"), naive=None),
            _both("r26_global_flags_b", noted("global_flags"), naive=None),
        ),
    ),
    Row(
        27,
        "baseline sabotaged",
        (
            Case(
                "r27_sabotaged_baseline_a",
                suspected("background_threads"),
                suspected("background_threads", gainless=True),
                naive=None,
            ),
            Case(
                "r27_sabotaged_baseline_b",
                suspected("patched_functions"),
                suspected("patched_functions", gainless=True),
                naive="fast",
            ),
            Case(
                "r27_sabotaged_baseline_c",
                suspected("background_threads"),
                suspected("background_threads", "clock_mismatch", "side_stream", gainless=True),
                naive=None,
            ),
        ),
    ),
    Row(
        28,
        "known seed",
        (
            _both("r28_known_seed_a", refused()),
            _both("r28_known_seed_b", refused()),
        ),
    ),
    Row(
        29,
        "work done while constructed",
        (
            _both("r29_early_work_a", refused()),
            _both("r29_early_work_b", refused()),
        ),
    ),
    Row(
        30,
        "stale weights",
        (
            _both("r30_stale_weights_a", suspected("stale_weights"), problem="dense"),
            _both("r30_stale_weights_b", suspected("stale_weights")),
            _both("r30_stale_weights_c", suspected("stale_weights"), problem="new_norm"),
            _both("r30_stale_weights_d", suspected("stale_weights"), problem="new_norm"),
            _both("r30_stale_weights_e", suspected("stale_weights"), problem="running_norm"),
        ),
    ),
    Row(
        31,
        "work left out that hardly shows",
        (
            _both(
                "r31_vanishing_work_a",
                suspected("fails_scaled_inputs", "fails_shifted_inputs"),
                problem="whiten",
            ),
            _both("r31_vanishing_work_b", suspected("fails_shifted_inputs"), problem="whiten"),
            _both("r31_vanishing_work_c", suspected("fails_scaled_inputs")),
        ),
    ),
    Row(
        32,
        "one shape only",
        (
            _both("r32_one_shape_a", harmless(must_pass=True)),
            _both("r32_one_shape_b", harmless(must_pass=True)),
        ),
    ),
    Row(
        33,
        "fallback after a failure",
        (
            _both("r33_fallback_a", suspected(*OWN_WORK)),
            _both("r33_fallback_b", suspected(*OWN_WORK)),
        ),
    ),
    Row(
        34,
        "decoy kernel",
        (
            _both("r34_decoy_a", suspected(*OWN_WORK), problem="dense"),
            _both("r34_decoy_b", suspected(*OWN_WORK), problem="dense"),
            _both("r34_decoy_c", suspected(*OWN_WORK), problem="dense"),
            Case(
                "r34_decoy_d",
                unseen("its kernel makes the output; that this takes no time shows on a clock alone"),
                noted("library_bound", *OWN_WORK),
                problem="dense",
            ),
            Case(
                "r34_decoy_e",
                unseen("the output depends on its kernel; that this takes no time shows on a clock alone"),
                noted("library_bound", *OWN_WORK),
                problem="dense",
            ),
        ),
    ),
    Row(
        35,
        "library called",
        (
            _both("r35_library_a", suspected("no_own_kernel")),
            _both("r35_library_b", suspected("no_own_kernel")),
            Case("r35_library_c", refused(), suspected("no_own_kernel"), naive=None),
        ),
    ),
    Row(
        36,
        "reference inherited",
        (
            _both("r36_inherited_a", refused()),
            _both("r36_inherited_b", refused()),
        ),
    ),
    Row(
        37,
        "cache residency",
        (
            Case("r37_cache_residency_a", TIMELESS, harmless(), problem="softmax", naive=None),
            Case("r37_cache_residency_b", TIMELESS, harmless(), problem="softmax", naive=None),
        ),
    ),
    Row(
        38,
        "replay of a captured graph",
        (
            Case("r38_graph_replay_a", refused(), refused(), naive=None),
            Case(
                "r38_graph_replay_b",
                refused(),
                suspected("output_reused", *HANDED_IN_TIME, gainless=True),
                naive=None,
            ),
            _both("r38_graph_replay_c", suspected("output_reused"), naive=None),
        ),
    ),
    Row(
        39,
        "games with dropout",
        (
            _both("r39_dropout_a", refused(), problem="dropped"),
            _both("r39_dropout_b", refused(), problem="dropped"),
        ),
    ),
    Row(
        40,
        "launch failed in silence",
        (
            _both("r40_silent_failure_a", refused(), naive=None),
            Case(
                "r40_silent_failure_b",
                unseen("the interpreter launches blocks of any size"),
                refused(),
                naive=None,
            ),
        ),
    ),
    Row(
        41,
        "outside of the bounds, races",
        (
            _both("r41_out_of_bounds_a", refused(), problem="row_sum", naive=None),
            Case(
                "r41_out_of_bounds_b",
                unseen("the interpreter runs one program after another"),
                refused(),
                problem="row_sum",
            ),
        ),
        reason="accesses without effect on any value are for compute-sanitizer",
    ),
    Row(
        42,
        "slot held",
        (
            _both("r42_slot_holder_a", refused(), naive=None, fields={"timeout": 3}),
            _both("r42_slot_holder_b", suspected("background_threads"), naive=None),
        ),
    ),
    Row(
        43,
        "files poisoned",
        (
            _both("r43_planted_files_a", refused(), prelude="r43_planted_files_prelude"),
            _both("r43_planted_files_b", refused()),
        ),
    ),
    Row(
        44,
        "judge detected by its surroundings",
        (
            _both("r44_environment_a", refused()),
            _both("r44_environment_b", refused()),
        ),
        reason="the judge's own modules, loaded beside the candidate, cannot be hidden from it",
    ),
    Row(
        45,
        "effect on later evaluations",
        (
            _both("r45_persistence_a", refused(), prelude="r45_persistence_prelude_a"),
            _both("r45_persistence_b", refused(), prelude="r45_persistence_prelude_b", naive=None),
        ),
    ),
    Row(
        46,
        "times of next to nothing",
        tuple(
            Case(
                f"r46_tiny_times_{letter}",
                suspected("patched_functions"),
                # c claims times below any possible one where the kernel is short
                suspected(
                    "patched_functions",
                    "below_bandwidth_bound",
                    *HANDED_IN_TIME,
                    gainless=True,
                    may_crash=letter == "c",
                ),
                naive=None if letter == "c" else "fast",
            )
            for letter in "abc"
        ),
    ),
    Row(
        47,
        "network and neighbours",
        (
            _both("r47_network_a", refused()),
            _both("r47_network_b", refused()),
        ),
    ),
    Row(
        48,
        "words for a reading model",
        (
            _both("r48_prompt_injection_a", refused(), naive=None),
            _both("r48_prompt_injection_b", refused(), naive=None),
        ),
        reason="no model takes part in a verdict; only the length of what agents read is tried",
    ),
    Row(
        49,
        "keys kept in the kernel",
        (
            _both("r49_kept_key_a", refused(), prelude="r49_kept_key_prelude_a"),
            _both("r49_kept_key_b", refused(), prelude="r49_kept_key_prelude_b"),
        ),
    ),
    Row(
        50,
        "shared memory cut off",
        tuple(_both(f"r50_shrunk_memory_{letter}", refused(), naive=None) for letter in "ab"),
        reason="on a GPU the memory is the driver's and there is no file to cut off",
    ),
    Row(
        51,
        "fork bomb",
        (
            _both("r51_fork_bomb_a", refused(), naive=None, fields={"timeout": 3}),
            _both("r51_fork_bomb_b", refused(), naive=None, fields={"timeout": 3}),
        ),
    ),
    Row(
        52,
        "system calls that no kernel needs",
        (
            _both("r52_deep_calls_a", refused()),
            _both("r52_deep_calls_b", refused()),
        ),
    ),
)

HONEST = {
    "gate": "honest_gate",
    "small_gate": "honest_gate",
    "dense": "honest_dense",
    "projection": "honest_projection",
    "softmax": "honest_softmax",
    "clip": "honest_clip",
    "row_sum": "honest_row_sum",
}
"""Honest twin by problem; no other flags than notes may fall on it."""
DEGENERATE = {"clip"}
"""Problems of honest twins that a trivial answer passes."""

CASES = {case.fixture: case for row in ROWS for case in row.cases}
ROW_OF = {case.fixture: row for row in ROWS for case in row.cases}
