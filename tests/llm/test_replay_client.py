from __future__ import annotations

from dataclasses import replace

import pytest

from adaexplore.core.errors import ModelRequestError
from adaexplore.core.plan import Purpose
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import Finish, ModelRequest
from adaexplore.llm.vendors.replay_client import ReplayClient
from adaexplore.llm.vendors.vendor import RecordedReply

CLIENT = ReplayClient(
    {
        "1_1/1/large": RecordedReply(Purpose.LARGE, "first", prompt="one\ntwo\nthree"),
        "1_1/2/small": RecordedReply(Purpose.SMALL, "half", Finish.CUT),
    }
)


def test_reply_is_the_recorded_one_at_no_cost() -> None:
    reply = CLIENT.complete(ModelRequest("one\ntwo\nthree", Purpose.LARGE, "1_1/1/large"))
    assert (reply.text, reply.finish, reply.usage) == ("first", Finish.COMPLETE, Usage())


def test_finish_is_replayed_for_an_unrecorded_prompt() -> None:
    reply = CLIENT.complete(ModelRequest("anything", Purpose.SMALL, "1_1/2/small"))
    assert (reply.text, reply.finish) == ("half", Finish.CUT)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (ModelRequest("x", Purpose.LARGE, "1_1/9/large"), "no reply for 1_1/9/large"),
        (
            ModelRequest("x", Purpose.REPAIR, "1_1/2/small"),
            "has a small reply for 1_1/2/small, but the request is for a repair",
        ),
        (ModelRequest("one\n2\nthree", Purpose.LARGE, "1_1/1/large"), "differs .* from line 2 on"),
        (ModelRequest("one\ntwo\nthree\nfour", Purpose.LARGE, "1_1/1/large"), "differs .* from line 4 on"),
    ],
)
def test_departure_from_the_recording_is_an_error(request_: ModelRequest, message: str) -> None:
    with pytest.raises(ModelRequestError, match=message):
        CLIENT.complete(request_)


def test_new_measurements_are_no_departure() -> None:
    client = ReplayClient({"1_1/1/large": RecordedReply(Purpose.LARGE, "first", prompt="x = 0.5\n1.2 ms")})
    request = ModelRequest("x = 0.5\n1.3 ms", Purpose.LARGE, "1_1/1/large", plain="x = 0.5\n# ms")
    assert client.complete(request).text == "first"
    with pytest.raises(ModelRequestError, match=r"differs .* from line 1 on"):
        client.complete(replace(request, prompt="x = 0.6\n1.3 ms", plain="x = 0.6\n# ms"))
