"""Steps of parallel searches are read in the order of observation."""

from __future__ import annotations

import dataclasses
import json
import os

import pytest

from adaexplore.core.draft import Draft, DraftOutcome, Exchange
from adaexplore.core.errors import RecordError
from adaexplore.core.judging.profile import KernelProfile, Profile
from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import to_metrics
from adaexplore.core.usage import Usage
from adaexplore.core.wire import CompileReport
from adaexplore.records.task_records import TaskRecords
from tests.verdicts import changed, make_verdict


@pytest.fixture
def at_place(make_step, passed):
    """Return a step that was observed as the ``place``-th."""

    def make(step, place, **more):
        record = make_step(step, verdict=passed(1.0 + step), **more)
        return dataclasses.replace(record, node=dataclasses.replace(record.node, total_nodes=place + 1))

    return make


def numbers(records):
    return [record.node.plan.step for record in records.steps()]


@pytest.mark.parametrize("agent_type", ["MCTS", "IRS", "PS"])
def test_steps_are_in_order_of_observation(tmp_path, agent_type, root, at_place):
    records = TaskRecords(tmp_path, agent_type)
    for record in (root, at_place(2, 1), at_place(4, 2), at_place(1, 3)):
        records.write_step(record)
    first = [0] if agent_type == "MCTS" else []
    assert numbers(records) == [*first, 2, 4, 1]
    assert [summary.step for summary in records.summaries()] == [*first, 2, 4, 1]
    assert records.step_count() == 3
    records.write_step(at_place(3, 4))
    assert numbers(records) == [*first, 2, 4, 1, 3]


def test_steps_after_a_gap_are_set_aside(tmp_path, root, at_place):
    records = TaskRecords(tmp_path, "MCTS")
    for record in (root, at_place(2, 1), at_place(1, 2), at_place(4, 3), at_place(3, 4)):
        records.write_step(record)
    (tmp_path / "step_1_log.json").unlink()
    with pytest.raises(RecordError, match=r"step_1_log\.json is missing"):
        records.steps()
    records.set_aside()
    assert sorted(name for name in os.listdir(tmp_path) if name.endswith("_log.json")) == [
        "step_0_log.json",
        "step_2_log.json",
    ]
    assert (tmp_path / "step_4_log_superseded.json").exists()
    records.write_step(at_place(1, 2))
    assert numbers(records) == [0, 2, 1]
    records.set_aside()
    assert numbers(records) == [0, 2, 1]


@pytest.mark.parametrize(("within", "taken"), [(1, [2]), (2, [2, 4]), (None, [2, 4, 1]), (9, [2, 4, 1])])
def test_the_first_steps_are_copied_in_their_order(tmp_path, root, at_place, within, taken):
    theirs, ours = TaskRecords(tmp_path / "a", "MCTS"), TaskRecords(tmp_path / "b", "MCTS")
    theirs.write_reference("problem")
    theirs.write_rules(["You cannot."])
    theirs.write_findings({"abc": CompileReport(ok=True, status="passed")})
    theirs.write_tree({}, "tree")
    for record in (root, at_place(2, 1), at_place(4, 2), at_place(1, 3)):
        theirs.write_step(record)
    theirs.write_profile(2, None)
    ours.copy_from(theirs, within)
    assert numbers(ours) == [0, *taken]
    assert ours.steps() == theirs.steps()[: len(taken) + 1]
    assert (ours.reference(), ours.rules(), ours.profiles()) == ("problem", ("You cannot.",), {2: None})
    assert ours.findings() == theirs.findings()
    assert not (tmp_path / "b" / "tree_stats.json").exists()


def test_tuning_fields_are_read_back(tmp_path, at_place):
    records = TaskRecords(tmp_path, "PS")
    record = dataclasses.replace(at_place(1, 1), written="BLOCK = 64\n")
    records.write_step(record)
    assert records.steps() == [record]
    log = json.loads((tmp_path / "proposal_1_log.json").read_text())
    assert (log["tuned"], "retimed" in log) == (True, False)


def test_step_with_two_timings_stays_readable(tmp_path, root, at_place, passed):
    theirs, ours = TaskRecords(tmp_path / "a", "MCTS"), TaskRecords(tmp_path / "b", "MCTS")
    combined = changed(passed(2.0), times_judged=2)
    record = dataclasses.replace(at_place(1, 1), verdict=combined)
    for step in (root, record, at_place(2, 2)):
        theirs.write_step(step)
    log = tmp_path / "a" / "step_1_log.json"
    log.write_text(json.dumps(json.loads(log.read_text()) | {"retimed": True}))
    timings = json.dumps([to_metrics(passed(1.0)), to_metrics(passed(4.0))])
    (tmp_path / "a" / "step_1_timings.json").write_text(timings)
    ours.copy_from(theirs)
    for records in (theirs, ours):
        assert records.steps()[1] == record
        assert [summary.retimed for summary in records.summaries()] == [False, True, False]
    assert (tmp_path / "b" / "step_1_timings.json").read_text() == timings


def test_files_of_earlier_attempt_are_not_read(tmp_path, at_place):
    records = TaskRecords(tmp_path, "PS")
    plain = at_place(1, 1)
    records.write_step(dataclasses.replace(plain, written="x = 1\n"))
    records.write_step(plain)
    assert records.steps() == [plain]


def test_why_replies_were_sent_back_is_counted(tmp_path, at_place):
    records = TaskRecords(tmp_path, "MCTS")
    exchanges = (
        Exchange("large", "p", "r"),
        Exchange("repair", "p", "r", reason="lint"),
        Exchange("repair", "p", "r", reason="lint"),
        Exchange("repair", "p", "r", reason="gate"),
    )
    records.write_step(at_place(1, 1, exchanges=exchanges))
    assert records.steps()[0].draft.exchanges == exchanges
    assert records.summaries()[0].repairs == {"lint": 2, "gate": 1}
    assert "reason" not in json.loads((tmp_path / "step_1_exchanges.json").read_text())[0]


def test_lint_verdict_belongs_to_the_draft(tmp_path, at_place):
    records = TaskRecords(tmp_path, "MCTS")
    verdict = make_verdict(status=Status.COMPILE, metadata={"feedback": "no"})
    draft = Draft(DraftOutcome.LINT_STOPPED, "x = 1\n", (), Usage(), verdict)
    record = dataclasses.replace(at_place(1, 1), draft=draft, verdict=verdict, evaluated=False)
    records.write_step(record)
    assert records.steps() == [record]


def test_profiles_are_read_back_and_damage_is_named(tmp_path, root, at_place):
    records = TaskRecords(tmp_path, "MCTS")
    for record in (root, at_place(1, 1), at_place(2, 2)):
        records.write_step(record)
    kernel = KernelProfile("k", 3, 12.5, 0.9, True, 64, 0, 1024, 4, 132, 0.5)
    profile = Profile((kernel,), 13.9, 20.0, 4096, 1e6, 0.4, "memory", "a GPU")
    records.write_profile(2, profile)
    assert records.profiles() == {2: profile}
    (tmp_path / "step_2_profile.json").write_text('{"kernels": 3}')
    with pytest.raises(RecordError, match="step_2_profile"):
        records.profiles()
    (tmp_path / "rules.json").write_text("{}")
    with pytest.raises(RecordError, match="rules"):
        records.rules()
