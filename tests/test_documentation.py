"""The Markdown pages: links lead somewhere, and lines are short."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from pydantic import BaseModel

from adaexplore.core import wire
from adaexplore.core.environment import DeviceFacts, Environment
from adaexplore.core.job_answer import JobAnswer
from adaexplore.core.judging.status import Status

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 120
LISTED = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
PAGES = [name for name in LISTED.stdout.split() if name.startswith(("docs/", "results/")) or "/" not in name]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def test_recorded_results_can_be_read() -> None:
    files = sorted(ROOT.glob("results/**/*.json*"))
    assert files
    for file in files:
        if file.suffix == ".json":
            json.loads(file.read_text(encoding="utf-8"))
        elif file.suffix == ".jsonl":
            for line in file.read_text(encoding="utf-8").splitlines():
                json.loads(line)


def prose(page: str) -> list[str]:
    """Return the lines outside of code blocks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).splitlines()


def anchors(page: str) -> set[str]:
    """Return the names of a page's headings, as GitHub makes them."""
    titles = [line.lstrip("#").strip().lower() for line in prose(page) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.skipif(not PAGES, reason="not a git work tree")
def test_every_link_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in LINK.findall(re.sub(r"`[^`\n]*`", "", "\n".join(prose(page)))):
            name, _, anchor = link.partition("#")
            if "://" in link:
                continue
            target = (ROOT / page).parent / name if name else ROOT / page
            if not target.exists() or (anchor and anchor not in anchors(str(target.resolve()))):
                broken.append(f"{page}: {link}")
    assert not broken


OF_V2 = [
    *(wire.ProblemRequest, wire.ProblemReport, wire.ProblemTraits, wire.TensorFacts, wire.Workload),
    *(wire.JobRequest, wire.JobTicket, JobAnswer, wire.CompileReport, wire.ProfileReport),
    *(wire.WorkerStatus, Environment, DeviceFacts),
]


@pytest.mark.parametrize("model", OF_V2, ids=lambda model: model.__name__)
def test_fields_of_the_wire_are_documented(model: type[BaseModel]) -> None:
    code = re.findall(r"`[^`\n]+`", "\n".join(prose("docs/judge-service.md")))
    documented = set(re.findall(r"\w+", " ".join(code)))
    assert model.model_fields.keys() <= documented


def test_every_status_is_documented() -> None:
    table = "\n".join(prose("docs/judge.md")).partition("| Status | Meaning |\n")[2].partition("\n\n")[0]
    first = [line.split("|")[1] for line in table.splitlines()[1:]]
    assert sorted(re.findall(r"`(\w+)`", " ".join(first))) == sorted(Status)


@pytest.mark.parametrize("page", PAGES)
def test_prose_is_at_most_120_columns_wide(page: str) -> None:
    long = [line for line in prose(page) if len(line) > WIDTH and not line.startswith("|")]
    assert not long


def test_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 120
    assert max(map(len, lines)) <= WIDTH
