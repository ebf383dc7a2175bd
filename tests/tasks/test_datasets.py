"""Benchmarks come whole, at their pinned revision, from a checkout, a web address or a hub."""

from __future__ import annotations

import errno
import http.server
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from adaexplore.cli.main import main
from adaexplore.settings.paths import REPOSITORY_ROOT
from adaexplore.tasks.datasets import checksum, read_catalogue

FILES = {
    "level1/1_add.py": b"class Model: ...\n",
    "level1/2_mul.py": b"x = 2\n" + bytes(range(256)) * 2000,
    "level2/1_gelu.py": b"class Model: ...\n# gelu\n",
}


class Server(http.server.ThreadingHTTPServer):
    """Serves ``pages`` with byte ranges, ``most`` bytes at a time; a connection ends ``pause_s`` later."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.most: int | None = None
        self.pause_s = 0.0
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        body = self.server.pages.get(self.path)
        if body is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start : start + (self.server.most or len(body))])
        self.wfile.flush()
        time.sleep(self.server.pause_s)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "clone"
    for name, content in FILES.items():
        path = root / "KernelBench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (root / "README.md").write_text("readme")
    return root


def catalogue(tmp_path: Path, checkout: Path, **fields: object) -> Path:
    """Write a list of one data set, with the checksums of ``checkout``."""
    parts = {part: checksum(checkout / "KernelBench" / part) for part in ("level1", "level2")}
    entry = {
        "title": "Bench", "folder": "Bench", "repository": "https://example.org/us/bench",
        "revision": "abc123", "root": "KernelBench", "parts": parts, "licence": "MIT",
        "citation": "Bench, 2026.",
        "archive": "http://127.0.0.1:1/none.tar.gz", **fields,
    }  # fmt: skip
    path = tmp_path / "datasets.yaml"
    entry = {key: value for key, value in entry.items() if value is not None}
    path.write_text(yaml.safe_dump({"checked": "2026-11-23", "datasets": {"bench": entry}}))
    return path


def tarball(**more: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        named = {f"bench-abc123/KernelBench/{name}": content for name, content in FILES.items()}
        for name, content in {**named, "bench-abc123/setup.py": b"", **more}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return out.getvalue()


def call(what: str, tmp_path: Path, *more: str) -> int:
    place = ["--catalogue", str(tmp_path / "datasets.yaml"), "--into", str(tmp_path / "data")]
    return main(["datasets", what, *more, *place])


def installed(tmp_path: Path) -> dict[str, bytes]:
    folder = tmp_path / "data/Bench"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("inner", ["", "KernelBench"])
def test_checkout_is_copied_and_checked(
    inner: str, tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue(tmp_path, checkout)
    assert call("download", tmp_path, "bench", "--from", str(checkout / inner)) == 0
    assert installed(tmp_path) == FILES
    assert call("check", tmp_path) == 0
    out = capsys.readouterr().out
    assert "Licence: MIT. Cite: Bench, 2026. https://example.org/us/bench" in out
    assert "abc123" in out
    assert call("download", tmp_path, "bench") == 0  # all is there: the address is not asked
    assert "nothing new" in capsys.readouterr().out


def test_missing_part_of_a_checkout_is_named(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    catalogue(tmp_path, checkout)
    (checkout / "KernelBench/level2/1_gelu.py").unlink()
    (checkout / "KernelBench/level2").rmdir()
    assert call("download", tmp_path, "bench", "--from", str(checkout)) == 0
    assert "holds no level2" in caplog.text
    assert call("check", tmp_path, "bench") == 1
    assert "level2  missing" in capsys.readouterr().out


def test_checkout_of_another_revision_is_refused(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue(tmp_path, checkout)
    (checkout / "KernelBench/level2/1_gelu.py").write_text("other")
    assert call("download", tmp_path, "bench", "--from", str(checkout)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "level2 of" in line
    assert "check out that revision" in line
    assert installed(tmp_path) == {}
    assert call("download", tmp_path, "bench", "--from", str(tmp_path)) == 2
    assert "holds none of level1, level2" in capsys.readouterr().err


def test_unreadable_file_of_a_checkout_is_named(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue(tmp_path, checkout)
    odd = checkout / "KernelBench/level1/odd.py"
    for make, why in (
        (lambda: odd.symlink_to("none"), "target is missing"),
        (lambda: os.mkfifo(odd), "no plain"),
    ):
        make()
        assert call("download", tmp_path, "bench", "--from", str(checkout)) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"adaexplore: cannot read {odd}: it")
        assert why in line
        assert line.endswith("; name a complete checkout")
        odd.unlink()
    assert installed(tmp_path) == {}


def test_links_of_a_checkout_stay_links(tmp_path: Path, checkout: Path) -> None:
    catalogue(tmp_path, checkout)
    (checkout / "KernelBench/level1/loop").symlink_to(".")
    assert call("download", tmp_path, "bench", "--from", str(checkout)) == 0
    assert os.readlink(tmp_path / "data/Bench/level1/loop") == "."


def test_copy_onto_full_disk_names_one_file(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str, **_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", source, None, target)

    catalogue(tmp_path, checkout)
    monkeypatch.setattr(shutil, "copyfile", full)
    assert call("download", tmp_path, "bench", "--from", str(checkout)) == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"adaexplore: cannot write {tmp_path}/data/.downloads/")
    assert "No space left" in line
    assert "[(" not in line


def test_changed_copy_is_found_and_never_replaced(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue(tmp_path, checkout)
    assert call("download", tmp_path, "bench", "--from", str(checkout)) == 0
    changed = tmp_path / "data/Bench/level1/1_add.py"
    changed.write_text("mine")
    assert call("check", tmp_path) == 1
    assert "level1  differs" in capsys.readouterr().out
    assert call("download", tmp_path, "bench", "--from", str(checkout)) == 2
    assert "move it away" in capsys.readouterr().err
    assert changed.read_text() == "mine"


def test_archive_is_unpacked_without_the_rest(tmp_path: Path, checkout: Path, server: Server) -> None:
    server.pages["/a.tar.gz"] = tarball(
        **{"bench-abc123/../../evil.py": b"", "bench-abc123/KernelBench/../../level1/x": b""}
    )
    catalogue(tmp_path, checkout, archive=f"{server.url}/a.tar.gz")
    assert call("download", tmp_path, "bench", "--part", "level1") == 0
    assert set(installed(tmp_path)) == {"level1/1_add.py", "level1/2_mul.py"}
    assert call("download", tmp_path, "bench") == 0
    assert installed(tmp_path) == FILES
    assert not list(tmp_path.rglob("evil.py"))


def test_broken_download_goes_on(
    tmp_path: Path, checkout: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.pages["/a.tar.gz"] = tarball()
    server.most = 1000
    catalogue(tmp_path, checkout, archive=f"{server.url}/a.tar.gz")
    assert call("download", tmp_path, "bench") == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot download bench" in line
    assert installed(tmp_path) == {}
    server.most = None
    assert call("download", tmp_path, "bench") == 0
    assert server.asked[-1] == ("/a.tar.gz", "bytes=1000-")
    assert installed(tmp_path) == FILES


@pytest.mark.slow
def test_killed_download_leaves_nothing_half(tmp_path: Path, checkout: Path, server: Server) -> None:
    server.pages["/a.tar.gz"] = tarball()
    server.most, server.pause_s = 1500, 30.0
    catalogue(tmp_path, checkout, archive=f"{server.url}/a.tar.gz")
    place = ["--catalogue", str(tmp_path / "datasets.yaml"), "--into", str(tmp_path / "data")]
    command = [sys.executable, "-m", "adaexplore", "datasets", "download", "bench", *place]
    with subprocess.Popen(command, cwd=REPOSITORY_ROOT) as process:
        begun = tmp_path / "data/.downloads/bench-abc123/archive.tar.part"
        deadline = time.monotonic() + 60
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert installed(tmp_path) == {}
    server.most = None
    assert call("download", tmp_path, "bench") == 0
    assert installed(tmp_path) == FILES


def test_without_network_one_line_says_what_to_do(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue(tmp_path, checkout)
    assert call("download", tmp_path, "bench") == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert "git clone https://example.org/us/bench && git -C bench checkout abc123" in line
    assert "adaexplore datasets download bench --from bench" in line


def test_archive_of_other_content_is_refused(
    tmp_path: Path, checkout: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue(tmp_path, checkout, archive=f"{server.url}/a.tar.gz")
    server.pages["/a.tar.gz"] = tarball(**{"bench-abc123/KernelBench/level2/2_more.py": b"more"})
    assert call("download", tmp_path, "bench") == 2
    assert "its checksum is not" in capsys.readouterr().err
    server.pages["/a.tar.gz"] = b"<html>busy</html>"
    assert call("download", tmp_path, "bench") == 5
    assert "is not a complete tar archive" in capsys.readouterr().err
    server.pages["/a.tar.gz"] = tarball()[:600] + b"\xff" * 400
    assert call("download", tmp_path, "bench") == 5
    assert "is not a complete tar archive" in capsys.readouterr().err
    assert installed(tmp_path) == {}
    server.pages["/a.tar.gz"] = tarball()
    assert call("download", tmp_path, "bench") == 0


def test_hub_is_read_page_by_page(
    tmp_path: Path,
    checkout: Path,
    server: Server,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    hub = f"{server.url}/datasets/us/bench"
    parts = {"level1": None, "level2": None}
    catalogue(tmp_path, checkout, archive=None, hub=hub, parts=parts, root="")
    for part in parts:
        names = [name for name in FILES if name.startswith(part)]
        listed = [{"type": "directory", "path": part}, *({"type": "file", "path": name} for name in names)]
        page = f"/api/datasets/us/bench/tree/abc123/{part}?recursive=true"
        server.pages[page] = json.dumps(listed).encode()
    for name, content in FILES.items():
        server.pages[f"/datasets/us/bench/resolve/abc123/{name}"] = content
    del server.pages["/datasets/us/bench/resolve/abc123/level2/1_gelu.py"]
    assert call("download", tmp_path, "bench") == 5
    server.pages["/datasets/us/bench/resolve/abc123/level2/1_gelu.py"] = FILES["level2/1_gelu.py"]
    server.asked.clear()
    assert call("download", tmp_path, "bench") == 0
    assert [path for path, _ in server.asked if "resolve" in path] == [
        "/datasets/us/bench/resolve/abc123/level2/1_gelu.py"
    ]
    assert installed(tmp_path) == FILES
    assert "are not verified" in caplog.text
    assert call("check", tmp_path) == 0
    assert "level1  not verified" in capsys.readouterr().out


def test_hub_cannot_write_elsewhere(
    tmp_path: Path, checkout: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    hub = f"{server.url}/datasets/us/bench"
    catalogue(tmp_path, checkout, archive=None, hub=hub, parts={"level1": None}, root="")
    listed = [{"type": "file", "path": "level1/../../../evil.py"}]
    server.pages["/api/datasets/us/bench/tree/abc123/level1?recursive=true"] = json.dumps(listed).encode()
    assert call("download", tmp_path, "bench") == 5
    assert "which is not below level1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["download"], "name the data set to download: bench"),
        (["download", "bnch"], "unknown data set 'bnch'; choose one of bench"),
        (["download", "bench", "--part", "level9"], "bench has no part 'level9'; it has level1, level2"),
        (["check", "--from", "x"], "--from and --part belong to datasets download"),
        (["list", "--catalogue", "none.yaml"], "no list of data sets none.yaml"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str],
    text: str,
    tmp_path: Path,
    checkout: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = catalogue(tmp_path, checkout)
    assert main(["datasets", "--catalogue", str(path), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line


def test_bundled_list_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets", "list"]) == 0
    listed = capsys.readouterr().out
    expected = {
        "kernelbench", "tritonbench-g", "tritonbench-t", "flashinfer-trace", "mlsys26", "sol-execbench",
        "sol-execbench-rocm", "kernelbench-x",
    }  # fmt: skip
    datasets = read_catalogue().datasets
    assert set(datasets) == expected
    assert all(dataset.citation in listed for dataset in datasets.values())
    ignored = (REPOSITORY_ROOT / ".gitignore").read_text().splitlines()
    assert all(f"datasets/{dataset.folder}/" in ignored for dataset in datasets.values())
    unverified = {name for name, dataset in datasets.items() if not dataset.verified}
    assert unverified == {"flashinfer-trace", "mlsys26"}
