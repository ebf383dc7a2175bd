"""The forms in which a problem gives arguments: a list, keywords, both, one tensor, or nothing."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Call = Callable[..., Any]
_SINGLE = (bool, int, float, complex, str)
_FORMS = "a list of arguments, a dict of keyword arguments, [list, dict] for both, or one tensor"


@dataclass(frozen=True)
class Arguments:
    """Arguments of one call; keywords come after the positional ones."""

    positional: tuple[object, ...] = ()
    keywords: Mapping[str, object] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.keywords)

    @property
    def values(self) -> list[object]:
        """All values in order; :func:`named` gives the last ones their names."""
        return [*self.positional, *self.keywords.values()]


def readings(given: object, function: Call, maker: str) -> tuple[Arguments, ...]:
    """Return the arguments that a problem's ``maker`` gives to ``function``.

    A dict holds keyword arguments, or is the one argument if ``function`` takes it only so. ``[list, dict]``
    holds positional and keyword arguments if the list is empty or ``function`` takes them so; else it is two
    arguments. A tensor is one argument, or a stack of several if ``function`` takes it only so. None means no
    argument. Two readings are left if ``function`` takes ``[list, {}]`` in both ways, see :func:`decide`.

    Raises:
        TypeError: it has none of these forms.
    """
    if given is None:
        return (Arguments(),)
    if isinstance(given, Mapping):
        alone = Arguments((given,))
        if not _has_names(given):
            return (alone,)
        named_ones = Arguments((), dict(given))
        return (alone,) if not fits(function, named_ones) and fits(function, alone) else (named_ones,)
    dimensions = getattr(given, "dim", None)
    if callable(dimensions) and dimensions() and isinstance(given, Iterable):  # a tensor
        alone, rows = Arguments((given,)), Arguments(tuple(given))
        return (rows,) if fits(function, rows) and not fits(function, alone) else (alone,)
    if isinstance(given, _SINGLE) or callable(dimensions):
        return (Arguments((given,)),)
    if not isinstance(given, Iterable):
        raise TypeError(f"{maker} returns an object of type {type(given).__qualname__}; return {_FORMS}")
    plain = Arguments(tuple(given))
    match plain.positional:
        case (list() | tuple() as first, Mapping() as second) if _has_names(second):
            both = Arguments(tuple(first), dict(second))
            if not first:
                return (both,)
            if not fits(function, both):
                return (plain,)
            return (both,) if second or not fits(function, plain) else (both, plain)
    return (plain,)


def init_arguments(problem: Any) -> Arguments | None:
    """Return the arguments of a loaded problem's ``Model``; None if that is a plain function.

    Raises:
        TypeError: they cannot be read, or it is neither a class nor a function.
        Exception: whatever the problem's code raises.
    """
    make, maker = problem.Model, "get_init_inputs()"
    is_module = not isinstance(make, type) and hasattr(make, "forward")
    if is_module or not callable(make):
        raise TypeError("Model is neither a class nor a function")
    given = problem.get_init_inputs() if hasattr(problem, "get_init_inputs") else None
    found = readings(given, make, maker)
    if not isinstance(make, type):
        taken = any(fits(make, each) for each in found)
        if not taken and found[0].values:
            raise TypeError(f"Model is a function, which does not take what {maker} gives; remove it")
        if not taken or not hasattr(problem, "get_init_inputs"):
            return None
    return found[decide(found, lambda each: construct(make, each), maker)]


def decide(found: Sequence[Arguments], call: Callable[[Arguments], object], maker: str) -> int:
    """Return the number of the only reading with which ``call`` works; 0 if none does.

    Raises:
        TypeError: several work.
    """
    works = [number for number, each in enumerate(found) if len(found) == 1 or _returns(call, each)]
    if len(works) > 1:
        raise TypeError(
            f"{maker} returns [list, {{}}], which may be one list of arguments or two arguments: return the "
            "list alone, or a dict with the name of each argument"
        )
    return works[0] if works else 0


def fits(function: Call, given: Arguments) -> bool:
    """Return True if the signature of ``function`` takes these arguments; False if it is unknown."""
    try:
        inspect.signature(function).bind(*given.positional, **given.keywords)
    except (TypeError, ValueError):
        return False
    return True


def construct(make: Any, given: Arguments | None) -> Any:
    """Return the callable that a problem or candidate defines; without arguments it may be a function."""
    if given is None:
        return make() if isinstance(make, type) else make
    return make(*given.positional, **given.keywords)


def named(call: Call, names: Sequence[str]) -> Call:
    """Return a callable that takes positional values alone and gives the last ones these names."""
    if not names:
        return call
    count = len(names)

    def with_names(*values: object) -> Any:
        return call(*values[:-count], **dict(zip(names, values[-count:], strict=True)))

    return with_names


def _has_names(given: Mapping[Any, object]) -> bool:
    return all(isinstance(name, str) for name in given)


def _returns(call: Callable[[Arguments], object], given: Arguments) -> bool:
    try:
        call(given)
    except Exception:  # noqa: BLE001 - the problem's own code
        return False
    return True
