"""Pages as HTML text, out of views of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files as package_files
from typing import Protocol
from urllib.parse import quote

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from adaexplore.core.usage import Usage
from adaexplore.report.statistics import FAILED_IN_GM, SPEEDUP_CAP
from adaexplore.report.task_result import total_usage
from adaexplore.view.charts import Measure, best_chart, compare_chart, run_curve
from adaexplore.view.model import LEGEND, Details, Node, RunView, TaskView, capped_mean, speedup_text
from adaexplore.view.panel import Panel, code_style, panel
from adaexplore.view.tree import shape_svg, tree_svg
from skill_memory.rule import Rule

Facts = list[tuple[str, str]]
Memory = Sequence[tuple[str, Sequence[Rule]]]


class Links(Protocol):
    """Say where pages are; the live page and the exported file differ in that."""

    def task(self, run: int, task: TaskView) -> str:
        """Return the address of a task's page."""

    def node(self, run: int, task: TaskView, node: Node) -> str:
        """Return the address of a node."""

    def of(self, run: int, task: TaskView) -> Callable[[Node], str]:
        """Return what gives the address of each node of a task."""


class LiveLinks:
    """Give addresses of the local server."""

    def task(self, run: int, task: TaskView) -> str:
        """See :class:`Links`."""
        return f"/run/{run}/{quote(task.key, safe='', errors='surrogateescape')}"

    def node(self, run: int, task: TaskView, node: Node) -> str:
        """See :class:`Links`."""
        return f"{self.task(run, task)}/{node.step}"

    def of(self, run: int, task: TaskView) -> Callable[[Node], str]:
        """See :class:`Links`."""
        return partial(self.node, run, task)


@dataclass(frozen=True)
class Shown:
    """What all pages are made of."""

    runs: tuple[RunView, ...]
    memory: Memory = ()
    queue: str = ""


def overview_page(shown: Shown) -> str:
    """Return the page of all runs with their tasks."""
    return _page("overview.html", "Runs", "/", runs=shown.runs, queue=shown.queue)


def task_page(run: RunView, number: int, task: TaskView, node: Node | None, details: Details) -> str:
    """Return the page of a task's search, with one node open where one is given."""
    here = LiveLinks().task(number, task)
    parts = {"node": node, "details": details, "panel": None if node is None else panel(details)}
    return _page("task.html", f"{task.key} - {run.name}", here, run=run, number=number, task=task, **parts)


def compare_page(shown: Shown) -> str:
    """Return the page that compares the runs."""
    return _page("compare.html", "Compare runs", "/compare", **comparison(shown.runs))


def memory_page(shown: Shown) -> str:
    """Return the page of the rules."""
    return _page("memory.html", "Skill memory", "/memory", files=shown.memory)


def comparison(runs: Sequence[RunView]) -> dict[str, object]:
    """Return the figures and the rows that compare runs."""
    figures = [compare_chart([run_curve(run, measure) for run in runs], measure) for measure in Measure]
    return {"figures": figures, "rows": [_row(run) for run in runs]}


@cache
def templates() -> Environment:
    """Return the templates; every value is escaped unless it was made as markup here."""
    found = Environment(loader=PackageLoader("adaexplore.view"), autoescape=True, trim_blocks=True)
    found.globals.update(
        best_chart=best_chart,
        dollars=_dollars,
        legend=LEGEND,
        links=LiveLinks(),
        node_facts=_node_facts,
        run_facts=_run_facts,
        shape_svg=shape_svg,
        speedup=speedup_text,
        task_facts=_task_facts,
        tokens=_tokens,
        tree=tree_svg,
    )
    return found


def static_text(name: str) -> str:
    """Return a file that pages load, such as ``view.js``."""
    return (package_files("adaexplore.view") / "static" / name).read_text("utf-8")


def style() -> str:
    """Return the style of all pages."""
    return static_text("view.css") + code_style()


def _page(template: str, title: str, here: str, **values: object) -> str:
    return templates().get_template(template).render(title=title, here=here, **values)


def _row(run: RunView) -> tuple[object, ...]:
    mean = capped_mean((task.best for task in run.tasks), SPEEDUP_CAP, FAILED_IN_GM) if run.tasks else None
    correct = sum(task.best.correct for task in run.tasks)
    steps = sum(len(task.nodes) for task in run.tasks)
    spent = total_usage(task.usage for task in run.tasks)
    return (
        run.name,
        len(run.tasks),
        correct,
        "none" if mean is None else f"{mean:.2f}",
        steps,
        _dollars(spent),
    )


def _run_facts(run: RunView) -> Facts:
    spent = total_usage(task.usage for task in run.tasks)
    _, tasks, correct, mean, steps, dollars = _row(run)
    return [
        ("Status", "running" if run.running else "not running"),
        ("Correct tasks", f"{correct} of {tasks}"),
        ("GM(10)", str(mean)),
        ("Steps", f"{steps}"),
        ("Tokens", _tokens(spent)),
        ("Dollars", str(dollars)),
    ]


def _task_facts(run: RunView, task: TaskView) -> Facts:
    best, spent = task.best, task.usage
    found: Facts = [("Status", run.status(task)), ("Best", speedup_text(best) or "none is correct")]
    if best.flags or best.problem_flags:
        found.append(("Flags", ", ".join((*best.flags, *best.problem_flags)).replace("_", " ")))
    found.append(("Steps", f"{len(task.nodes)}" + (f" of {run.total_steps}" if run.total_steps else "")))
    found += [(status.replace("_", " "), str(count)) for status, count in task.failures.items()]
    return [*found, ("Tokens", _tokens(spent)), ("Dollars", _dollars(spent))]


def _node_facts(task: TaskView, node: Node, shown: Panel) -> Facts:
    found: Facts = [("Verdict", shown.summary or node.status.replace("_", " "))]
    found.append(("Parent", f"step {node.parent}" if node.parent else "root"))
    if node.step == task.best.step:
        found.append(("Place", "best of the task"))
    if node.usage is not None:
        found += [
            ("Tokens", _tokens(node.usage)),
            ("Dollars", _dollars(node.usage)),
            ("Model", f"{node.usage.seconds:.1f} s"),
        ]
    return found


def _tokens(usage: Usage | None) -> str:
    return "unknown" if usage is None else f"{usage.input_tokens:,} in, {usage.output_tokens:,} out"


def _dollars(usage: Usage | None) -> str:
    return "unknown" if usage is None or usage.usd is None else f"{usage.usd:.4f}"


def safe(text: str) -> Markup:
    """Return text of this package's own files as markup."""
    return Markup(text)
