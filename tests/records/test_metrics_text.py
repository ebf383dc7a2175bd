"""Any metrics survive conversion to text and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.judging.status import Status
from adaexplore.records.layout import natural
from adaexplore.records.metrics import from_metrics, from_text, to_metrics, to_text
from tests.verdicts import make_verdict

values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
metadata = st.dictionaries(
    st.text(min_size=1).filter(lambda key: key not in {"status", "outcome"}),
    st.one_of(values, st.lists(st.text(), max_size=3)),
    max_size=4,
)


@given(metadata, st.sampled_from([status for status in Status if status is not Status.PASSED]))
def test_any_failing_verdict_reads_back_from_one_line(data, status):
    verdict = make_verdict(status=status, metadata=data)
    text = to_text(to_metrics(verdict, DraftOutcome.WRITTEN))
    assert "\n" not in text
    assert from_metrics(from_text(text)) == verdict


@given(metadata, st.floats(0.001, 1e4), st.floats(0.001, 1e3))
def test_any_passing_verdict_reads_back_from_one_line(data, runtime_ms, speedup):
    verdict = make_verdict(
        status=Status.PASSED, metadata=data, runtime_ms=runtime_ms, runtime_stats={"fast_p": speedup}
    )
    assert from_metrics(from_text(to_text(to_metrics(verdict, DraftOutcome.WRITTEN)))) == verdict


@given(st.text(), st.integers(0), st.integers(0), st.text())
def test_natural_order_counts(before, low, high, after):
    names = [f"{before}_{high}_{after}", f"{before}_{low}_{after}"]
    assert sorted(names, key=natural)[0] == f"{before}_{min(low, high)}_{after}"
