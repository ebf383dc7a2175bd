"""Export all pages as one file that works without a server and without external addresses."""

import base64
import hashlib
from collections.abc import Sequence

from markupsafe import Markup

from adaexplore.view.model import Node, RunView, TaskView
from adaexplore.view.pages import Links, Shown, comparison, memory_files, static_text, style, templates
from adaexplore.view.panel import panel
from adaexplore.view.sources import Source

MAX_PANELS = 32 << 20
"""Maximum characters of all panels; beyond it, steps without improvement are left out."""


class FileLinks(Links):
    """Addresses within the file."""

    def __init__(self, runs: Sequence[RunView]) -> None:
        self._numbers = [{task.key: index for index, task in enumerate(run.tasks)} for run in runs]

    def task(self, run: int, task: TaskView) -> str:
        return f"#r{run}-t{self._numbers[run][task.key]}"

    def node(self, run: int, task: TaskView, node: Node) -> str:
        return f"{self.task(run, task)}-n{node.step}"


def export_page(shown: Shown, sources: Sequence[Source]) -> str:
    links = FileLinks(shown.runs)
    panels, left_out = _panels(shown.runs, sources, links)
    tasks = [
        (
            number,
            run,
            task,
            [
                (anchor[1:], panels[anchor])
                for anchor in map(links.of(number, task), task.nodes)
                if anchor in panels
            ],
        )
        for number, run in enumerate(shown.runs)
        for task in run.tasks
    ]
    script, sheet = static_text("view.js"), style() + static_text("export.css")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(sheet)}; "
        "base-uri 'none'; form-action 'none'"
    )
    template = templates().get_template("export.html")
    return template.render(
        title=", ".join(run.name for run in shown.runs),
        runs=shown.runs,
        tasks=tasks,
        files=memory_files(shown),
        links=links,
        left_out=left_out,
        script=Markup(script),
        style=Markup(sheet),
        policy=policy,
        **comparison(shown.runs),
    )


def _panels(
    runs: Sequence[RunView], sources: Sequence[Source], links: Links
) -> tuple[dict[str, Markup], int]:
    """Return panels by anchor, improvements first, and the number of panels left out."""
    places = [
        (number, run, task, node)
        for number, run in enumerate(runs)
        for task in run.tasks
        for node in task.nodes
    ]
    places.sort(key=lambda place: place[3].best.step != place[3].step)
    made: dict[str, Markup] = {}
    size = 0
    macro = templates().get_template("parts.html").module.node  # type: ignore[attr-defined]
    for number, run, task, node in places:
        if size > MAX_PANELS:
            break
        details = sources[number].details(task.key, node.step)
        html = macro(run, number, task, node, details, panel(details), links)
        made[links.node(number, task, node)] = html
        size += len(html)
    return made, len(places) - len(made)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
