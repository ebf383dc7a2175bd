from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from adaexplore.core.errors import AnswersPending, Interrupted, StorageError
from adaexplore.llm.protocol import ModelRequest, Purpose, Turn
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
