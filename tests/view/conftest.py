"""A served run, and a browser to look at it with."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., str]]:
    """Start ``adaexplore view`` and return its address."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path) -> str:
        command = [sys.executable, "-m", "adaexplore", "view", *map(str, arguments), "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        return process.stdout.readline().split("/ ")[0]

    yield start
    for process in started:
        process.terminate()
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start a headless Chromium that asks nothing of the network."""
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield found
        found.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """Open a page of 1440 pixels; what it logs as an error fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    found = context.new_page()
    faults: list[str] = []
    found.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    found.on("pageerror", lambda error: faults.append(str(error)))
    yield found
    context.close()
    assert faults == []
