"""Outputs of commands about stored runs, as text; run as a script it writes them to ``expected``.

``runs.tar.xz`` holds one small run per format of records: of each kind of agent (``mcts``, ``irs``,
``irle``), with untimed kernels (``untimed``), without a correct one (``failed``), of an earlier version
(``earlier``), forked, steered, with a starting kernel and a profile (``forked``), with nothing but the best
kernel (``bests``), the same in the files of the release (``release_...``), and its packed ``trace``.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tarfile
import tempfile
from html.parser import HTMLParser
from pathlib import Path

from adaexplore.cli.main import main
from adaexplore.records.run_records import RunRecords
from adaexplore.settings.load import load_config

HERE = Path(__file__).parent
OF_THIS_PROJECT = ("mcts", "irs", "irle", "untimed", "failed", "earlier")
OF_THE_RELEASE = ("release_mcts", "release_irs", "release_irle", "release_failed")
RUNS = (*OF_THIS_PROJECT, *OF_THE_RELEASE, "forked", "bests", "trace")
RESUMED = (*OF_THIS_PROJECT, *OF_THE_RELEASE, "forked")
REPLAYED = tuple(
    name for name in (*OF_THIS_PROJECT, "forked") if name != "untimed"
)  # of a preset whose prompts never change
TASK = "0_row_sum"


def unpack(folder: Path) -> Path:
    """Unpack the stored runs into ``folder``; commands name them by paths relative to it."""
    with tarfile.open(HERE / "runs.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(folder)
    return folder


def printed(*arguments: str) -> str:
    """Return what a command prints on standard output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as trouble:
        code = main(list(arguments))
    assert code in (0, 1), trouble.getvalue()
    return out.getvalue()


def stats(run: str) -> str:
    return printed("stats", run) + printed("stats", run, "--format", "json")


def show(run: str) -> str:
    steps = {"runs/mcts": range(1, 12), "runs/bests": range(0)}.get(run, (1, 2, 4))
    pages = [printed("show", run), *(printed("show", run, TASK, str(step)) for step in steps)]
    return "\n=====\n".join(pages)


def view(run: str) -> str:
    """Return the text of the exported page with the marks of its tree, without code and prompts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        printed("view", run, "--export", str(path))
        page = _Text()
        page.feed(path.read_text("utf-8"))
    return "\n".join(page.lines) + "\n"


def export(run: str) -> str:
    rows = [json.loads(line) for line in printed("export", run, "--format", "messages").splitlines()]
    return "".join(json.dumps(row | {"messages": len(row["messages"])}) + "\n" for row in rows)


def resumed(run: str) -> str:
    """Return the tree after one more step of the stored run, written offline."""
    folder = Path(run)
    agent = load_config(folder / "config.yaml").agent_type
    total = RunRecords(folder).task(TASK).step_count() + 1
    settings = [f"save_path={run}", f"total_steps={total}", f"agent_type={agent}", "server_type=offline"]
    settings += ["dummy=true", "general_memory_path=memory.txt", "directions=false"]
    settings += [f"preset={'default' if run.endswith('untimed') else 'paper'}"]
    flags = [text for each in settings for text in ("--set", each)]
    problem = folder.with_name("row_sum.py")
    problem.write_bytes((folder / TASK / "reference_src.py").read_bytes())
    printed("run", "--task", str(problem), *flags)
    return tree(run, total - 1)


def replayed(run: str) -> str:
    """Return the tree of the run's repetition."""
    printed("replay", run, "--out", f"{run}-again")
    return tree(f"{run}-again")


def tree(run: str, stored: int = 1000) -> str:
    """Return a line for each step: its plan, for the first ``stored`` ones also its result."""
    lines = []
    for record in RunRecords(Path(run)).task(TASK).steps():
        node, plan = record.node, record.node.plan
        line = f"{plan.step} {plan.kind} of {plan.parent_id}, shown {plan.elite_ids} {plan.context_ids}"
        if plan.step <= stored:
            code = hashlib.sha256(record.draft.source.encode()).hexdigest()[:8]
            line += f": {node.score.as_list()}, best {node.global_best_node_id}, code {code}"
        lines.append(f"{line}\n")
    return "".join(lines)


def outputs(name: str) -> dict[str, str]:
    """Return the output of each command about a stored run, by the command's name."""
    run = f"runs/{name}"
    made = {"view": view(run)}
    if name != "trace":
        made |= {"stats": stats(run), "show": show(run), "export": export(run)}
    if name in REPLAYED:
        made["replayed"] = replayed(run)
    if name in RESUMED:
        made["resumed"] = resumed(run)
    return made


def expected(name: str, command: str) -> Path:
    return HERE / "expected" / f"{name}.{command}.txt"


class _Text(HTMLParser):
    """The visible words of a page, and the classes of what its pictures draw."""

    _left_out = ("script", "style", "pre")

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in self._left_out:
            self._inside.append(tag)
        if found.get("aria-label") and tag == "a":
            self.lines.append(f"<{found['aria-label']}>")
        if tag in ("circle", "path") and found.get("class") not in (None, "grid", "edge"):
            self.lines.append(f"({found['class']})")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._left_out:
            self._inside.remove(tag)

    def handle_data(self, data: str) -> None:
        words = " ".join(data.split())
        if words and not self._inside:
            self.lines.append(words)


def write_expected() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(unpack(Path(folder)))
        for name in RUNS:
            for command, text in outputs(name).items():
                path = expected(name, command)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, "utf-8")


if __name__ == "__main__":
    write_expected()
