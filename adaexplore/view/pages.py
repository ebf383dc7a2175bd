"""Render pages as HTML."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files as package_files
from urllib.parse import quote

from jinja2 import Environment, PackageLoader

from adaexplore.core.usage import Usage
from adaexplore.report.comparison import ratio_interval
from adaexplore.report.figures import gm10_log
from adaexplore.report.task_result import total_usage
from adaexplore.view.charts import Measure, best_chart, compare_chart, run_curve
from adaexplore.view.model import (
    Details,
    Node,
    RunView,
    Shape,
    TaskView,
    Uplift,
    gm10_of,
    speedup_text,
    uplift,
)
from adaexplore.view.panel import Panel, code_style, panel
from adaexplore.view.tree import shape_svg, tree_svg
from skill_memory.failures.signature import Signature
from skill_memory.rule import Rule

Facts = list[tuple[str, str]]
Memory = Sequence[tuple[str, Sequence[Rule]]]


class Links:
    """Addresses of pages on the local server."""

    def task(self, run: int, task: TaskView) -> str:
        return f"/run/{run}/{quote(task.key, safe='', errors='surrogateescape')}"

    def node(self, run: int, task: TaskView, node: Node) -> str:
        return f"{self.task(run, task)}/{node.step}"

    def of(self, run: int, task: TaskView) -> Callable[[Node], str]:
        """Return a function that gives the address of each node of a task."""
        return partial(self.node, run, task)


@dataclass(frozen=True)
class Shown:
    """The data of all pages."""

    runs: tuple[RunView, ...]
    memory: Memory = ()
    queue: str = ""


def overview_page(shown: Shown) -> str:
    return _page("overview.html", "Runs", "/", runs=shown.runs, queue=shown.queue)


def task_page(run: RunView, number: int, task: TaskView, node: Node | None, details: Details) -> str:
    here = Links().task(number, task)
    parts = {"node": node, "details": details, "panel": None if node is None else panel(details)}
    return _page("task.html", f"{task.key} - {run.name}", here, run=run, number=number, task=task, **parts)


def compare_page(shown: Shown) -> str:
    return _page("compare.html", "Compare runs", "/compare", **comparison(shown.runs))


def memory_page(shown: Shown) -> str:
    return _page("memory.html", "Skill memory", "/memory", files=memory_files(shown))


def memory_files(shown: Shown) -> list[tuple[str, list[tuple[Rule, Uplift]]]]:
    """Return the rules of each memory file with their uplift in the runs."""
    return [
        (path, [(rule, uplift(shown.runs, rule.text, _failures(rule))) for rule in rules])
        for path, rules in shown.memory
    ]


def _failures(rule: Rule) -> frozenset[str]:
    found = map(Signature.from_key, rule.signatures)
    return frozenset(signature.family for signature in found if signature is not None)


def comparison(runs: Sequence[RunView]) -> dict[str, object]:
    """Return the charts and rows of the comparison."""
    figures = [compare_chart([run_curve(run, measure) for run in runs], measure) for measure in Measure]
    return {"figures": figures, "rows": [(*_row(run), _against(run, runs[0])) for run in runs]}


@cache
def templates() -> Environment:
    """Return the templates; every value is escaped unless this module made it as markup."""
    found = Environment(loader=PackageLoader("adaexplore.view"), autoescape=True, trim_blocks=True)
    found.globals.update(
        best_chart=best_chart,
        dollars=_dollars,
        shapes=Shape,
        links=Links(),
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
    return static_text("view.css") + code_style()


def _page(template: str, title: str, here: str, **values: object) -> str:
    return templates().get_template(template).render(title=title, here=here, **values)


def _row(run: RunView) -> tuple[object, ...]:
    mean = gm10_of(task.best for task in run.tasks)
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


def _against(run: RunView, first: RunView) -> str:
    """Return the speed ratio of a run to the first one on their common tasks, with its interval."""
    if run is first:
        return ""
    others = {task.key: task.best for task in first.tasks}
    pairs = [(task.best, others[task.key]) for task in run.tasks if task.key in others]
    known = [
        (own, other) for own, other in pairs if all(best.speedup or not best.correct for best in (own, other))
    ]
    logs = [[gm10_log(own.speedup) - gm10_log(other.speedup)] for own, other in known]
    ratio, low, high = ratio_interval(logs)
    return "none" if ratio is None else f"{ratio:.2f}x [{low:.2f}, {high:.2f}], {len(logs)} tasks"


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
    name = node.status.replace("_", " ")
    found: Facts = [("Verdict", f"{name}: {node.why}" if node.why else shown.summary or name)]
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
