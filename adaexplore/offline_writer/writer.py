"""Write Triton kernels without a model: translate the reference's syntax tree."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from adaexplore.core.draft import ShownKernel
from adaexplore.core.errors import ModelRequestError
from adaexplore.core.plan import Purpose
from adaexplore.core.streams import stream
from adaexplore.core.text.tokens import estimate_tokens
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import (
    Finish,
    MergeData,
    ModelReply,
    ModelRequest,
    RuleData,
    StepData,
    TaskData,
)
from adaexplore.llm.vendors.vendor import Vendor
from adaexplore.offline_writer.choices import (
    NUMBERS,
    STRUCTURE,
    Choices,
    directed,
    draw_numbers,
    is_swept,
    numbered,
    read_choices,
)
from adaexplore.offline_writer.mistakes import blunder
from adaexplore.offline_writer.module import renamed, translate
from adaexplore.offline_writer.patches import edits_between
from adaexplore.offline_writer.review import review
from adaexplore.offline_writer.rule_writer import same_rule, write_rule
from adaexplore.offline_writer.tasks import answer

MODEL_NAME = "offline"
NO_CHANGE = "no change"
_ATTEMPTS = 12  # draws after which a small step stops looking for a new kernel
_FOREIGN_NUMBERS = {"num_warps": (1, 2, 4, 8, 16), "BLOCK": (256, 512, 1024, 2048, 4096)}


class OfflineWriter:
    """Answers requests of every purpose with real code, without a model or a network.

    The answer depends only on the seed, the request's key and its data; the prompt is not read.

    Args:
        seed: of all draws.
        mistake_share: probability that a kernel gets one typical mistake of models.
    """

    def __init__(self, seed: int, mistake_share: float = 0.25) -> None:
        self._seed = seed
        self._mistake_share = mistake_share

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request.

        Raises:
            ModelRequestError: there is no data, or the reference is not Python.
        """
        rng = stream(self._seed, MODEL_NAME, request.key, request.purpose.value)
        text = self._answer(request, rng)
        usage = Usage(estimate_tokens(request.transcript), 0, estimate_tokens(text), 0.0, 0.0)
        return ModelReply(text, Finish.COMPLETE, usage, MODEL_NAME)

    def _answer(self, request: ModelRequest, rng: random.Random) -> str:
        match request.data:
            case TaskData() as data:
                return answer(data, rng)
            case RuleData() as data:
                return write_rule(data)
            case MergeData() as data:
                return same_rule(data)
            case None:
                raise ModelRequestError("the offline writer reads no prompts: give the request its data")
        # a repair is another answer to the conversation's first request
        purpose = request.earlier[0].purpose if request.earlier else request.purpose
        try:
            if purpose is Purpose.REVIEW and request.data.kernels:
                return review(request.data.kernels[-1], rng)
            if request.data.edits:
                return self._small(request.data, rng)
            return f"```python\n{self._large(request.data, rng)}```"
        except SyntaxError as error:
            raise ModelRequestError(
                f"the reference module is not Python: {error.msg}, line {error.lineno}"
            ) from error

    def _large(self, data: StepData, rng: random.Random) -> str:
        """Return a whole module: the best shown structure or a new one, with new numbers."""
        reference, designs = data.reference, possible_designs(data.reference)
        if _is_beyond(data, designs):
            return renamed(reference)
        shown = [(kernel, read_choices(kernel.source)) for kernel in data.kernels]
        known = [(kernel, choices) for kernel, choices in shown if choices is not None]
        tried = [choices.structure for _, choices in known]
        fresh = [choices for choices in designs if choices.structure not in tried]
        measured = [
            (kernel.verdict.speedup, position, choices)
            for position, (kernel, choices) in enumerate(known)
            if kernel.verdict is not None and kernel.verdict.speedup
        ]
        if measured and (not fresh or rng.random() < 0.4):
            base = max(measured)[2]
        elif fresh:
            base = fresh[0] if not known and rng.random() < 0.6 else rng.choice(fresh)
        else:
            sound = [choices for kernel, choices in known if not kernel.failed]
            base = rng.choice(sound or designs)
        base = replace(base, swept=data.tunes)
        aimed = None if known else directed(base, data.direction)
        base, place = aimed or (base, 0)
        numbers = _numbers_in(translate(reference, base))
        if aimed is not None:  # beside other first kernels the direction makes it different
            source = translate(reference, numbered(base, numbers, place))
            return self._with_mistake(source, data.rules, rng)
        source, seen = "", {kernel.source.strip() for kernel in data.kernels}
        for attempt in range(_ATTEMPTS):
            share = 0.15 if not known and attempt == 0 else 0.35
            source = translate(reference, draw_numbers(base, numbers, rng, share))
            if source.strip() not in seen:
                break
        return self._with_mistake(source, data.rules, rng)

    def _small(self, data: StepData, rng: random.Random) -> str:
        """Return edits of the last kernel: repair a failed one, else change one or two numbers."""
        if not data.kernels:
            return NO_CHANGE
        reference, last = data.reference, data.kernels[-1]
        choices = read_choices(last.source)
        if choices is None:
            return _foreign_edit(last.source, rng)
        clean = translate(reference, choices)
        if last.failed and clean.strip() != last.source.strip():
            return edits_between(last.source, self._with_mistake(clean, data.rules, rng)) or NO_CHANGE
        if _is_beyond(data, possible_designs(reference)):
            return edits_between(last.source, renamed(reference)) or NO_CHANGE
        seen = {kernel.source.strip() for kernel in data.kernels}
        best = clean
        for _ in range(_ATTEMPTS):
            best = translate(reference, _neighbour(reference, choices, last, rng))
            if best.strip() not in seen:
                break
        return edits_between(last.source, self._with_mistake(best, data.rules, rng)) or NO_CHANGE

    def _with_mistake(self, source: str, rules: tuple[str, ...], rng: random.Random) -> str:
        return blunder(source, rules, rng) if rng.random() < self._mistake_share else source


def _is_beyond(data: StepData, designs: Sequence[Choices]) -> bool:
    """Return True if none passed, and two structures (or all) failed without a deliberate mistake."""
    failed = set()
    for kernel in data.kernels:
        choices = read_choices(kernel.source)
        if not kernel.failed:
            return False
        if choices is not None and translate(data.reference, choices).strip() == kernel.source.strip():
            failed.add(tuple(choices.structure.items()))
    return len(failed) >= min(2, len(designs))


def possible_designs(reference: str) -> list[Choices]:
    """Return structures that give different kernels for ``reference``, the usual one first.

    Structures without any kernel are left out if there are others.
    """
    found: dict[str, Choices] = {}
    for values in product(*STRUCTURE.values()):
        choices = Choices(structure=dict(zip(STRUCTURE, values, strict=True)))
        body = translate(reference, choices).split("\n", 1)[1]
        found.setdefault(body, choices)
    written = [choices for body, choices in found.items() if "@triton.jit" in body]
    return written or list(found.values())


def _numbers_in(source: str) -> list[str]:
    return [name for name in NUMBERS if re.search(rf"^{name} = \d+$", source, re.M)]


def _neighbour(reference: str, choices: Choices, last: ShownKernel, rng: random.Random) -> Choices:
    """Change one or two numbers, or the structure after a failure that no number explains.

    If the judge has chosen the numbers, changing them gains little.
    """
    if last.failed or rng.random() < (0.6 if choices.swept else 0.15):
        others = [design for design in possible_designs(reference) if design.structure != choices.structure]
        if others:
            return replace(choices, structure=rng.choice(others).structure)
    names = _numbers_in(last.source)
    names = [name for name in names if not is_swept(name, last.source)] or names
    for name in rng.sample(names, min(len(names), rng.choice((1, 1, 2)))):
        others_here = [value for value in NUMBERS[name] if value != choices.numbers[name]]
        choices = choices.with_number(name, rng.choice(others_here))
    return choices


def _foreign_edit(source: str, rng: random.Random) -> str:
    """Return a modest change of a number in a kernel that this writer did not make."""
    places = [
        (match, name)
        for name in _FOREIGN_NUMBERS
        for match in re.finditer(rf"\b({name}\w*)( ?= ?)(\d+)\b", source)
        if int(match[3]) in _FOREIGN_NUMBERS[name]
    ]
    if not places:
        return NO_CHANGE
    match, name = rng.choice(places)
    value = rng.choice([number for number in _FOREIGN_NUMBERS[name] if number != int(match[3])])
    changed = f"{source[: match.start()]}{match[1]}{match[2]}{value}{source[match.end() :]}"
    return edits_between(source, changed) or NO_CHANGE


VENDOR = Vendor(
    names=("offline",),
    about="a writer without model and network",
    needs="nothing",
    open=lambda opening: OfflineWriter(opening.config.seed),
    cost="nothing",
    writes_backward=False,
)
