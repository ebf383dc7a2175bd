import gzip
import json
import logging
import math
import random

import pytest

from adaexplore.core.errors import ConfigError
from tool_scripts.search_bench.moves import recorded_moves, stall_hazard, timing_noise
from tool_scripts.search_bench.recorded import RecordedProblem
from tool_scripts.search_bench.traces import read_tree, read_trees, usable

from .conftest import READS, bundle, step


def written(path, steps):
    path.write_text(json.dumps(bundle("2_9", steps)), encoding="utf-8")
    return read_tree(path)


def test_trees_are_named_after_their_run_and_sorted(trees):
    assert [tree.name for tree in read_trees(trees)] == ["2_1", "2_2", "2_3"]
    assert read_trees(trees)[0].top == pytest.approx(math.log(3.0))


def test_compressed_trees_are_read_beside_plain_ones(trees):
    plain = read_trees(trees)
    file = trees / "p2_2.json"
    (trees / "p2_2.json.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + file.read_bytes(), mtime=0))
    file.unlink()
    assert read_trees(trees) == plain


def test_a_first_step_may_have_no_parent(tmp_path):
    steps = [step(1, None, "large", 2.0), step(2, 1, "small", 3.0)]
    assert [step.parent_id for step in written(tmp_path / "a.json", steps).steps] == [0, 1]


def test_curve_is_share_of_the_log_gain(tmp_path):
    tree = written(
        tmp_path / "a.json",
        [
            step(1, 0, "large", 0.0),
            step(2, 0, "large", 2.0),
            step(3, 2, "small", 1.5),
            step(4, 2, "small", 4.0),
        ],
    )
    assert tree.curve(6) == pytest.approx([0.0, 0.5, 0.5, 1.0, 1.0, 1.0])


def test_a_failed_step_may_have_no_speedup(tmp_path):
    failed = step(1, 0, "large", 0.0)
    failed["score"]["fast_p"] = None
    assert written(tmp_path / "a.json", [failed, step(2, 0, "large", 2.0)]).curve(2) == [0.0, 1.0]


@pytest.mark.parametrize("speedup", [0.0, 0.9, math.inf])
def test_tree_without_a_gain_is_left_out(trees, speedup, caplog):
    caplog.set_level(logging.INFO)
    tree = written(trees / "a.json", [step(1, 0, "large", speedup)])
    assert tree not in usable(read_trees(trees), [])
    assert caplog.messages[0] == "2_9: left out, no kernel in it is correct and faster than 1x"
    with pytest.raises(ConfigError, match="no recorded tree is left"):
        usable([tree], [])


def test_trees_are_left_out_by_run_or_file(trees):
    kept = usable(read_trees(trees), ["2_1"])
    assert [tree.name for tree in kept] == ["2_2"]
    assert usable(read_trees(trees), ["p2_1"]) == kept
    with pytest.raises(ConfigError, match="--leave-out 2_7: no such tree, there are 2_1, 2_2, 2_3"):
        usable(read_trees(trees), ["2_7"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a recorded tree"),
        ("[]", "is not a recorded tree"),
        ('{"steps": [{"created_by": "small_step"}]}', "is not a recorded tree"),
        (json.dumps(bundle("x", [step(1, 7, "large", 2.0)])), "step 1 names node 7, which is not before it"),
        (json.dumps(bundle("x", [step(math.inf, 0, "large", 2.0)])), "is not a recorded tree"),
        ("[" * 100_000, "is not a recorded tree"),
        (gzip.compress(b"{}", mtime=0)[:-9], "is not a recorded tree"),
        (b"\x1f\x8bnothing of the kind", "is not a recorded tree"),
        (b"\xff\xfe", "is not a recorded tree"),
    ],
)
def test_unusable_file_is_named_in_one_line(tmp_path, text, message):
    file = tmp_path / "bad.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=message) as raised:
        read_tree(file)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_steps_are_sorted_by_kind_and_start(tmp_path):
    tree = written(
        tmp_path / "a.json",
        [
            step(1, 0, "large", 2.0),
            step(2, 1, "small", 0.0, [1]),
            step(3, 1, "small", 4.0, [1]),
            step(4, 1, "large", 3.0, [3]),
            step(5, 0, "large", 0.0),
            step(6, 5, "small", 1.0, [5]),
            step(7, 3, "small", 3.9, [1, 3]),
        ],
    )
    moves = recorded_moves(tree)
    assert [(move.start, move.end) for move in moves.small] == [
        (math.log(2), None),
        (math.log(2), math.log(4)),
        (math.log(4), math.log(3.9)),
    ]
    assert [move.stuck for move in moves.small] == [False, False, True]
    assert [(move.start, move.end) for move in moves.large] == [(math.log(4), math.log(3))]
    assert moves.fresh == (math.log(2), None)
    assert (moves.first_repairs, moves.repaired) == ((0.0,), (True,))
    assert moves.lineages == ((math.log(2), math.log(4)),)


def test_noise_is_read_off_repeated_sources(tmp_path):
    same = READS.format("same")
    steps = [step(1, 0, "large", 2.0, code=same), step(2, 1, "small", 2.0 * math.exp(0.1), [1], same)]
    assert timing_noise([written(tmp_path / "a.json", steps)]) == pytest.approx(0.1 / math.sqrt(2))


def test_stalled_lineages_differ_from_fresh_ones(tmp_path):
    steps = [step(1, 0, "large", 1.0), step(2, 1, "small", 1.2, [1])]
    steps += [step(number, 2, "small", 1.0, [1, 2]) for number in range(3, 9)]
    steps += [step(9, 0, "large", 8.0)]
    # fresh: step 2 advances, step 3 does not; stalled for 4 and 5 attempts: two that do not
    assert stall_hazard([written(tmp_path / "a.json", steps)]) == (0.5, 0.0)


def problem(trees, share):
    tree = read_trees(trees)[1]
    return RecordedProblem(tree.name, tree.top, recorded_moves(tree), share, 0.02, 0.5)


def test_simulated_problem_repeats_and_stays_within_its_top(trees):
    def search(seed):
        rng, environment = random.Random(seed), problem(trees, 0.5)
        found = [environment.large([], rng)]
        for _ in range(60):
            if rng.random() < 0.2:
                shown = [item for item in found if item.correct]
                found.append(environment.large(shown[-5:], rng))
            else:
                found.append(environment.small(found[-1], rng))
        return found

    found = search(3)
    assert found == search(3)
    assert any(item.correct for item in found)
    assert any(not item.correct for item in found)
    assert max(item.true_speedup for item in found) <= 6.0 + 1e-9


def test_lineages_with_a_ceiling_stop_below_the_top(trees):
    def best(share):
        rng, environment = random.Random(5), problem(trees, share)
        tops = []
        for _ in range(40):
            node = environment.large([], rng)
            for _ in range(40):
                step = environment.small(node, rng)
                node = step if step.true_speedup >= node.true_speedup else node
            tops.append(node.true_speedup)
        return sum(tops) / len(tops)

    assert best(0.9) < 0.8 * best(0.0)
