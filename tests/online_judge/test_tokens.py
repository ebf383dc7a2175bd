"""Clients with tokens of their own: their file, and their rate."""

import hashlib
from pathlib import Path

import pytest

from adaexplore.core.errors import ConfigError
from online_judge.common.tokens import Client, Rates, find_client, read_clients
from online_judge.settings import Settings


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def test_file_gives_clients_with_their_limits(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(
        f"# who\n\nci {hash_of('a')}  # ours\nlab {hash_of('b').upper()} per_minute=60 queued=5\n"
    )
    clients = read_clients(path)
    assert clients == (Client("ci", hash_of("a")), Client("lab", hash_of("b"), 5, 60))
    assert Settings.from_environment({"JUDGE_TOKENS": str(path)}).clients == clients
    assert [find_client(clients, token) for token in (b"a", b"b", b"c", b"")] == [*clients, None, None]
    assert hash_of("a") not in repr(Settings.from_environment({"JUDGE_TOKENS": str(path)}))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ci", "SHA-256"),
        ("ci secret", "SHA-256"),
        (f"c/i {hash_of('x')}", "name"),
        (f"ci {hash_of('x')} queued", "queued"),
        (f"ci {hash_of('x')} queued=0", "queued=0"),
        (f"ci {hash_of('x')} queued=-1", "queued=-1"),
        (f"ci {hash_of('x')} queued=1 queued=2", "twice"),
        (f"ci {hash_of('x')} per_hour=1", "per_hour"),
        (f"first {hash_of('x')}", "twice"),
        (f"ci {hash_of('first')}", "same token"),
    ],
)
def test_malformed_line_is_named(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# comment\nfirst {hash_of('first')}\n{line}\n")
    with pytest.raises(ConfigError, match=why) as caught:
        Settings.from_environment({"JUDGE_TOKENS": str(path)})
    assert f"{path}:3: " in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("content", [None, b"", b"# nobody\n", b"\xff\xfe"])
def test_unusable_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokens"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"JUDGE_TOKENS {path}"):
        Settings.from_environment({"JUDGE_TOKENS": str(path)})


def test_rate_counts_the_last_minute() -> None:
    rates, client = Rates(), Client("ci", max_per_minute=2)
    assert [rates.wait_s(client, now) for now in (0.0, 30.0, 45.0, 59.0, 60.0, 61.0)] == [0, 0, 15, 1, 0, 29]
    assert rates.wait_s(Client("lab", max_per_minute=2), 61.0) == 0
    assert {rates.wait_s(Client("free"), 0.0) for _ in range(100)} == {0.0}
