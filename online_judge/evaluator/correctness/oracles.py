"""Run a module in another precision: a higher one, or one with rounded operands whose error a tier allows."""

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from adaexplore.core.wire import Direction, Tier
from online_judge.common import cuda_driver, gradients, modules, trees
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import deviation
from online_judge.evaluator.correctness.tiers import MANTISSA_BITS, OracleKind

_REFUSALS = (Exception, SystemExit)
"""What a module may raise in a precision other than its own; this is no failure."""
_DTYPES: dict[OracleKind, torch.dtype] = {"fp64": torch.float64, "fp32": torch.float32}
_MATMUL = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
_DROPPED_BITS = 23 - MANTISSA_BITS["tf32"]  # of float32's mantissa
# positions of operands among the arguments of an aten operation
_OPERANDS = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "convolution"), (0, 1)),
    **dict.fromkeys(("addmm", "addmv", "addbmm", "baddbmm", "_addmm_activation"), (1, 2)),
    **dict.fromkeys(("addmm_", "addmv_", "addbmm_", "baddbmm_"), (1, 2)),
    "convolution_backward": (0, 1, 2),  # the gradient of the output, input and weight: two products
}
# intermediate results of a forward call, in units of weights, inputs and outputs together
_WORKING_SPACE = 3
# runs that differ by more than this share of the spread drew other numbers; rounding differs by less
_DRAWN = 1e-3


def run(
    model: torch.nn.Module,
    inputs: list[object],
    kind: OracleKind,
    seed: int,
    *,
    cuda: bool,
    direction: Direction = "forward",
    names: Sequence[str] = (),
) -> trees.Tree | None:
    """Call a copy of ``model`` on copies of ``inputs``, both in the precision of ``kind``.

    The last inputs are keyword arguments of these ``names``. None if it refuses that precision or memory
    does not suffice.
    """
    dtype = _DTYPES[kind]
    if cuda and not _fits(model, inputs, dtype):
        return None
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        with torch.no_grad(), highest_precision():
            wide = modules.cast_module(copy.deepcopy(model), dtype)
            given = [
                trees.map_leaves(value, lambda leaf: modules.cast_floating(leaf, dtype))
                for value in copied(inputs)
            ]
            modules.seed_everything(seed)
            tree = trees.take_apart(gradients.calling(wide, direction, names)(*given))
            if cuda:
                torch.cuda.synchronize()
    except _REFUSALS:
        return None
    finally:
        torch.set_default_dtype(before)
        if cuda:
            cuda_driver.free_cache_if_scarce()
    return tree


def copied(inputs: list[object]) -> list[object]:
    """Return copies of the inputs."""
    return [trees.map_leaves(value, lambda leaf: leaf.detach().clone()) for value in inputs]


def differ(first: trees.Tree, second: trees.Tree) -> bool:
    """Return True if two runs of one module on one input differ by more than rounding."""
    if first.signature() != second.signature():
        return True
    for one, other in zip(first.leaves, second.leaves, strict=True):
        if one.shape != other.shape:
            return True
        found = deviation.error(one, other)
        if found.odd or found.rms > _DRAWN:
            return True
    return False


def highest_precision() -> contextlib.AbstractContextManager[None]:
    """Allow no TF32 and no reduced-precision sums within the block."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return _switched(*((matmul, name, False) for name in _MATMUL), (cudnn, "allow_tf32", False))


def tf32_allowed() -> contextlib.AbstractContextManager[None]:
    """Allow TF32 in matrix products and convolutions within the block."""
    backends = (torch.backends.cuda.matmul, torch.backends.cudnn)
    return _switched(*((backend, "allow_tf32", True) for backend in backends))


@contextlib.contextmanager
def _switched(*switches: tuple[object, str, bool]) -> Iterator[None]:
    """Set these attributes for the length of the block."""
    before = [getattr(backend, name) for backend, name, _ in switches]
    try:
        for backend, name, value in switches:
            setattr(backend, name, value)
        yield
    finally:
        for (backend, name, _), value in zip(switches, before, strict=True):
            setattr(backend, name, value)


def _fits(model: torch.nn.Module, inputs: list[object], dtype: torch.dtype) -> bool:
    """Return True if the GPU has memory for a widened copy and its intermediate results."""
    held = [*model.parameters(), *model.buffers(), *costs.leaves_of(inputs)]
    need = sum(
        int(leaf.numel()) * int(dtype.itemsize if leaf.is_floating_point() else leaf.element_size())
        for leaf in held
    )
    cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    free = int(torch.cuda.mem_get_info()[0] + cached)
    return need * (1 + _WORKING_SPACE) <= free


def truncated(operand: torch.Tensor) -> torch.Tensor:
    """Clear the bits of float32 that TF32 lacks, as ``tl.dot`` does; NaN and infinities stay."""
    bits = operand.contiguous().view(torch.int32)
    return ((bits >> _DROPPED_BITS) << _DROPPED_BITS).view(torch.float32)


def rounded_to_bf16(operand: torch.Tensor) -> torch.Tensor:
    return operand.to(torch.bfloat16).to(torch.float32)


ROUNDINGS: dict[Tier, Callable[[torch.Tensor], torch.Tensor]] = {"tf32": truncated, "half": rounded_to_bf16}


def emulated(model: Callable[..., object], inputs: list[object], tier: Tier, seed: int) -> trees.Tree | None:
    """Call ``model`` once, its products in float32 with rounded operands; ``inputs`` stay unchanged.

    Tier ``tf32`` truncates operands to 10 bits of mantissa, ``half`` rounds them to bfloat16. ``seed`` is set
    before the call; buffers may change. None if the call makes no product, or fails in this form (too little
    memory, for example).
    """
    try:
        with torch.no_grad(), highest_precision(), _plain_kernels(), _Products(tier) as products:
            modules.seed_everything(seed)
            tree = trees.take_apart(model(*copied(inputs)))
    except _REFUSALS:
        return None
    return tree if products.seen else None


class _Products(TorchDispatchMode):  # type: ignore[misc]
    """Rounds the float32 operands of matrix products and convolutions."""

    def __init__(self, tier: Tier) -> None:
        super().__init__()
        self.seen = False
        self._rounding = ROUNDINGS[tier]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        positions = _OPERANDS.get(name)
        if positions is None or any(args[place].dtype != torch.float32 for place in positions):
            return func(*args, **(kwargs or {}))
        self.seen = True
        given = list(args)
        for place in positions:
            given[place] = self._rounding(given[place])
        if not name.startswith("convolution"):
            return func(*given, **(kwargs or {}))
        with _libraries(True):  # one product, and slow without these
            return func(*given, **(kwargs or {}))


@contextlib.contextmanager
def _plain_kernels() -> Iterator[None]:
    """Have attention and recurrent layers run as single products, which can be intercepted."""
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), _libraries(False):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)


def _libraries(value: bool) -> contextlib.AbstractContextManager[None]:
    """Switch cuDNN and oneDNN on or off within the block."""
    return _switched(*((each, "enabled", value) for each in (torch.backends.cudnn, torch.backends.mkldnn)))
