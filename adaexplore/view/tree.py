"""The search tree of a task as SVG: depth from left to right, one row per leaf."""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from adaexplore.view.drawing import Drawing
from adaexplore.view.model import Node, Shape, TaskView, parents, speedup_text

COLUMN = 46
ROW = 22
MARGIN = 18


def tree_svg(task: TaskView, link: Callable[[Node], str]) -> Markup:
    """Draw the tree; each node is a link with a label, its position and the best after it."""
    at = _places(task.nodes)
    width = MARGIN * 2 + COLUMN * max((x for x, _ in at.values()), default=0) + 40
    height = MARGIN * 2 + ROW * max((y for _, y in at.values()), default=0)
    svg = Drawing(width, height, f"Search tree of {task.key}", role="group")
    best = task.best.step
    svg.add("circle", "root", cx=_x(at[0]), cy=_y(at[0]), r=4)
    for node, parent in parents(task.nodes):
        (x, y), (left, up) = ((_x(at[step]), _y(at[step])) for step in (node.step, parent))
        bend = left + COLUMN / 2
        line = f"M{left:.5g} {up:.5g}C{bend:.5g} {up:.5g} {bend:.5g} {y:.5g} {x:.5g} {y:.5g}"
        svg.add("path", "edge", d=line, data_to=str(node.step))
    for place, (node, parent) in enumerate(parents(task.nodes), start=1):
        x, y = _x(at[node.step]), _y(at[node.step])
        group = svg.add("g", "node", data_place=place, data_step=str(node.step), data_parent=str(parent))
        after = f"best after step {node.step}: {speedup_text(node.best) or 'none is correct'}"
        anchor = svg.add(
            "a",
            "",
            group,
            href=link(node),
            aria_label=node.label,
            data_best=after,
            transform=f"translate({x:.5g} {y:.5g})",
        )
        marks: list[str] = [
            node.shape,
            "small" if node.parent and node.kind is not None and node.kind.edits else "large",
        ]
        if node.found.flags:
            marks.append("flagged")
        svg.add("rect", "hit", anchor, x=-11, y=-11, width=COLUMN, height=ROW, rx=4)
        if node.step == best:
            svg.add("circle", "ring", anchor, r=11)
        tag, form = _form(node.shape)
        svg.add(tag, " ".join(marks), anchor, None, **form)
        svg.add("text", "", anchor, str(node.step)[:12], x=11, y=4)
    return svg.markup()


def shape_svg(shape: Shape) -> Markup:
    """Draw one shape for the legend."""
    svg = Drawing(20, 20, "", aria_hidden="true")
    svg.root.attrib.pop("aria-label")
    tag, form = _form(shape)
    svg.add(tag, f"{shape} large", None, None, transform="translate(10 10)", **form)
    return svg.markup()


def _form(shape: Shape) -> tuple[str, dict[str, str]]:
    """Return the SVG element that draws a shape, with its attributes."""
    match shape:
        case Shape.PASSED:
            return "circle", {"r": "7"}
        case Shape.WRONG:
            return "path", {"d": "M0 -8L8 6L-8 6Z"}
        case Shape.BUILD:
            return "path", {"d": "M-6.5 -6.5H6.5V6.5H-6.5Z"}
        case Shape.CRASH:
            return "path", {"d": "M0 -8.5L8.5 0L0 8.5L-8.5 0Z"}
        case Shape.REJECTED:
            return "path", {"d": "M-4 -8H4L8 -4V4L4 8H-4L-8 4V-4Z"}
        case Shape.UNEDITED:
            return "path", {"d": "M-6 0A6 6 0 1 1 6 0A6 6 0 1 1 -6 0M-9 0H9"}
        case Shape.NOTHING:
            return "circle", {"r": "5"}
        case Shape.BROKEN:
            return "path", {"d": "M-6 -6L6 6M-6 6L6 -6"}


def _places(nodes: Sequence[Node]) -> dict[int, tuple[int, float]]:
    """Return column and row by step; a parent is in the row of its first child."""
    children: dict[int, list[int]] = {0: []}
    for node, parent in parents(nodes):
        children.setdefault(parent, []).append(node.step)
        children.setdefault(node.step, [])
    at: dict[int, tuple[int, float]] = {}
    row, stack = -1, [(0, 0, True)]
    while stack:
        step, depth, is_first = stack.pop()
        if step in at:
            continue
        row += not is_first or not at
        at[step] = (depth, row)
        stack += [(child, depth + 1, index == 0) for index, child in reversed([*enumerate(children[step])])]
    return at


def _x(place: tuple[int, float]) -> float:
    return MARGIN + COLUMN * place[0]


def _y(place: tuple[int, float]) -> float:
    return MARGIN + ROW * place[1]
