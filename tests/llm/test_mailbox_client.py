from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from adaexplore.core.errors import AnswersPending, Interrupted, StorageError
from adaexplore.core.plan import Purpose
from adaexplore.llm.protocol import ModelRequest, Turn
from adaexplore.llm.vendors.mailbox_client import MailboxClient
from tests.llm.conftest import ask, build_client


def prompts(folder: Path) -> list[Path]:
    return sorted((folder / "prompts").glob("*"))


def answer(folder: Path, prompt: Path, text: str) -> None:
    draft = folder / "draft"
    draft.write_text(text)
    draft.rename(folder / "answers" / prompt.name)


def request(text: str, key: str = "1_1/2/large") -> ModelRequest:
    return ModelRequest(text, Purpose.LARGE, key)


def test_a_prompt_waits_until_its_answer_is_there(tmp_path: Path) -> None:
    client = MailboxClient(tmp_path, wait_s=0)
    with pytest.raises(AnswersPending, match=r"^1 prompt waits in .*prompts; write the answers to"):
        client.complete(request("a prompt\nwith ünïcode"))
    (prompt,) = prompts(tmp_path)
    assert prompt.name.startswith("1_1.2.large.")
    assert prompt.read_text() == "a prompt\nwith ünïcode"
    answer(tmp_path, prompt, "the answer\n")
    reply = client.complete(request("a prompt\nwith ünïcode"))
    assert (reply.text, reply.model, reply.usage.usd) == ("the answer\n", "mailbox", None)
    assert prompts(tmp_path) == [prompt]


def test_a_later_session_asks_under_the_same_name(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(AnswersPending) as pending:
            build_client("mailbox", "m", mailbox=tmp_path).complete(request("text"))
    assert pending.value.prompts == len(prompts(tmp_path)) == 1


def test_another_text_is_another_prompt(tmp_path: Path) -> None:
    client = MailboxClient(tmp_path, wait_s=0)
    with pytest.raises(AnswersPending):
        client.complete(request("before"))
    answer(tmp_path, prompts(tmp_path)[0], "to what was asked before")
    with pytest.raises(AnswersPending):
        client.complete(request("after"))
    assert len(prompts(tmp_path)) == 2


def test_an_empty_answer_file_is_ignored(tmp_path: Path) -> None:
    client = MailboxClient(tmp_path, wait_s=0)
    for text in ("", " \n"):
        with pytest.raises(AnswersPending) as pending:
            client.complete(request("p"))
        answer(tmp_path, prompts(tmp_path)[0], text)
    assert pending.value.prompts == 1


def test_each_answer_prolongs_the_wait_of_all(tmp_path: Path) -> None:
    client = MailboxClient(tmp_path, wait_s=1.0)
    ended: dict[str, float] = {}

    def complete(text: str) -> None:
        try:
            client.complete(request(text, text))
        except AnswersPending:
            ended[text] = time.monotonic()

    threads = [threading.Thread(target=complete, args=(text,)) for text in ("one", "two")]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    time.sleep(0.6)
    answer(tmp_path, next(path for path in prompts(tmp_path) if path.name.startswith("one")), "yes")
    for thread in threads:
        thread.join()
    assert list(ended) == ["two"]
    assert ended["two"] - begun > 1.5


def test_a_stop_ends_the_wait(tmp_path: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    with pytest.raises(Interrupted, match="run the same command"):
        MailboxClient(tmp_path, wait_s=60, stop=stop).complete(ask())


def test_a_conversation_is_one_text(tmp_path: Path) -> None:
    turn = Turn("first", Purpose.LARGE, "my answer\n")
    with pytest.raises(AnswersPending):
        MailboxClient(tmp_path, wait_s=0).complete(
            ModelRequest("again", Purpose.REPAIR, "k", earlier=(turn,))
        )
    assert prompts(tmp_path)[0].read_text() == "first\n\n## Your reply\nmy answer\n\nagain"


def test_an_answer_need_not_be_text(tmp_path: Path) -> None:
    client = MailboxClient(tmp_path, wait_s=0)
    with pytest.raises(AnswersPending):
        client.complete(ask())
    (tmp_path / "answers" / prompts(tmp_path)[0].name).write_bytes(b"\xffok")
    assert client.complete(ask()).text == "\ufffdok"


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot use .*file.*change mailbox_path"):
        MailboxClient(tmp_path / "file", wait_s=0).complete(ask())


PROMPT = "scale = 0.5\nVerdict: passed, {}x\nEdit kernel 0"


def measured(speedup: str, code: str = "scale = 0.5", key: str = "1_1/2/small") -> ModelRequest:
    """Return a request whose prompt states a speedup."""
    prompt, plain = (PROMPT.format(each).replace("scale = 0.5", code) for each in (speedup, "#"))
    return ModelRequest(prompt, Purpose.SMALL, key, plain=plain)


def ask_and_answer(folder: Path, asked: ModelRequest, text: str, run: str = "") -> None:
    before = set(prompts(folder))
    with pytest.raises(AnswersPending):
        MailboxClient(folder, wait_s=0, run=run).complete(asked)
    (prompt,) = set(prompts(folder)) - before
    answer(folder, prompt, text)


def test_an_answer_counts_after_new_measurements(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ask_and_answer(tmp_path, measured("1.234"), "an edit")
    assert MailboxClient(tmp_path, wait_s=0).complete(measured("1.3")).text == "an edit"
    assert len(prompts(tmp_path)) == 1
    assert not caplog.records


@pytest.mark.parametrize(
    ("code", "line"), [("scale = 0.25", 1), ("scale = 0.5 # 3 ms", 1), ("scale = 0.5\nbias = 1", 2)]
)
def test_another_program_is_asked_again_with_a_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, code: str, line: int
) -> None:
    ask_and_answer(tmp_path, measured("1.2"), "an edit")
    with pytest.raises(AnswersPending, match="1 prompt waits"):
        MailboxClient(tmp_path, wait_s=0).complete(measured("1.2", code))
    (warning,) = caplog.records
    was = PROMPT.format("1.2").split("\n")[line - 1]
    now = PROMPT.format("1.2").replace("scale = 0.5", code).split("\n")[line - 1]
    assert warning.getMessage().startswith(f"1_1/2/small is asked again: line {line} of 1_1.2.small.")
    assert warning.getMessage().endswith(f" is {was!r}, now it is {now!r}")


def test_answers_to_other_steps_do_not_count(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for key in ("1_1/2/small", "1_1/3/small", "1_2/2/small", "1_1/2/small-2"):
        ask_and_answer(tmp_path, measured("1.2", key=key), key)
    for key in ("1_1/2/small", "1_1/3/small", "1_2/2/small", "1_1/2/small-2"):
        assert MailboxClient(tmp_path, wait_s=0).complete(measured("1.3", key=key)).text == key
    assert not caplog.records


def test_runs_in_one_folder_keep_answers_apart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ask_and_answer(tmp_path, measured("1.2"), "to one", run="one")
    ask_and_answer(tmp_path, measured("1.2"), "to the other", run="other")
    (warning,) = caplog.records
    assert "is another run's" in warning.getMessage()
    assert MailboxClient(tmp_path, wait_s=0, run="one").complete(measured("1.3")).text == "to one"
    assert MailboxClient(tmp_path, wait_s=0, run="other").complete(measured("1.3")).text == "to the other"


def test_answers_to_prompts_of_earlier_versions_count(tmp_path: Path) -> None:
    ask_and_answer(tmp_path, measured("1.2"), "an edit")  # named by the text alone
    for speedup in ("1.2", "1.3"):
        assert MailboxClient(tmp_path, wait_s=0, run="one").complete(measured(speedup)).text == "an edit"


def test_a_repair_counts_after_new_measurements(tmp_path: Path) -> None:
    def repair(speedup: str, reply: str = "reply 0.5") -> ModelRequest:
        first = measured(speedup)
        turn = Turn(first.prompt, first.purpose, reply, plain=first.plain)
        told = f"An equal program was judged before: {speedup}x"
        plain = "An equal program was judged before: #x"
        return ModelRequest(told, Purpose.REPAIR, "1_1/2/repair", earlier=(turn,), plain=plain)

    ask_and_answer(tmp_path, repair("1.2"), "a repair")
    assert MailboxClient(tmp_path, wait_s=0).complete(repair("1.3")).text == "a repair"
    with pytest.raises(AnswersPending):
        MailboxClient(tmp_path, wait_s=0).complete(repair("1.2", reply="reply 0.6"))
