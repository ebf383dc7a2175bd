"""Functions that are copied into generated modules: layouts, dtypes, rows, tiles."""

SUPPORT: dict[str, str] = {
    "_mish": '''@triton.jit
def _mish(x):
    """x * tanh(softplus(x)), with the hyperbolic tangent of a logarithm written out."""
    e = tl.exp(tl.where(x > 20, 20.0, x))
    n = e * (e + 2.0)
    return x * n / (n + 2.0)
''',
    "_at": '''@triton.jit
def _at(index, STEP: tl.constexpr, SIZE: tl.constexpr):
    """Where element ``index`` of the output is found in an operand laid out by ``_layout``."""
    if SIZE == 0:
        return index
    else:
        return index // STEP % SIZE
''',
    "_layout": '''def _layout(tensor, shape):
    """``tensor`` and how an index of ``shape`` addresses it: index // step % size, as is for size 0."""
    if tensor.shape == shape:
        return tensor.contiguous(), 1, 0
    padded = (1,) * (len(shape) - tensor.dim()) + tuple(tensor.shape)
    wide = [axis for axis in range(len(shape)) if padded[axis] != 1]
    if not wide:
        return tensor.contiguous(), 1, 1
    first, last = wide[0], wide[-1] + 1
    if padded[first:last] == tuple(shape[first:last]):
        return tensor.contiguous(), math.prod(shape[last:]), tensor.numel()
    return tensor.expand(shape).contiguous(), 1, 0
''',
    "_dtype": '''def _dtype(*tensors):
    """The dtype that torch promotes ``tensors`` to; those without dimensions do not count."""
    dtypes = [tensor.dtype for tensor in tensors if tensor.dim()] or [tensor.dtype for tensor in tensors]
    return functools.reduce(torch.promote_types, dtypes)
''',
    "_rows": '''def _rows(shape, axes):
    """Number of rows, their length and the stride of their elements when ``axes`` are reduced."""
    axes = sorted(axis % len(shape) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    if axes != list(range(axes[0], axes[-1] + 1)):
        raise ValueError(f"axes {axes} are not adjacent")
    size, inner = math.prod(shape[axes[0] : axes[-1] + 1]), math.prod(shape[axes[-1] + 1 :])
    return math.prod(shape) // size, size, inner
''',
    "_groups": '''def _groups(shape, groups):
    """Number of rows, their length and stride when channels are normalised in ``groups``."""
    rows = shape[0] * groups
    return rows, math.prod(shape) // rows, 1
''',
    "_reduced": '''def _reduced(shape, axes, keep):
    """``shape`` after a reduction over ``axes``."""
    axes = {axis % len(shape) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,))}
    kept = [1 if axis in axes else length for axis, length in enumerate(shape)]
    return tuple(kept) if keep else tuple(length for axis, length in enumerate(kept) if axis not in axes)
''',
    "_same_rows": '''def _same_rows(shape, axes, *reduced):
    """``axes`` counted from the end; raises where later operands would lengthen the rows."""
    inner = torch.broadcast_shapes(*reduced)
    axes = [axis % len(inner) - len(inner) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if any(inner[axis] != shape[axis] for axis in axes):
        raise ValueError(f"an operand changes the reduced shape {tuple(inner)} to {tuple(shape)}")
    return axes
''',
    "_tiles": '''def _tiles(size, inner, limit):
    """Rows per program, elements per pass, warps, and whether a row takes several passes."""
    block = triton.next_power_of_2(size)
    lanes = 1 if inner == 1 else min(LANES, triton.next_power_of_2(inner))
    looped = block * lanes > limit
    if looped:
        block = min(block, max(16, LOOP_BLOCK // lanes))
    if inner == 1:
        lanes = max(1, ROW_TILE // block)
    return lanes, block, min(16, max(1, lanes * block // (32 * ROW_WORK))), looped
''',
    "_batches": '''def _batches(left, right, shape):
    """Both operands with exactly one batch dimension; rows of ``left`` are folded where possible."""
    if right.dim() == 2 and left.dim() > 2:
        left = left.reshape(1, -1, left.shape[-1])
        return left, right[None]
    left = left.expand(*shape[:-2], *left.shape[-2:]).reshape(-1, *left.shape[-2:])
    right = right.expand(*shape[:-2], *right.shape[-2:]).reshape(-1, *right.shape[-2:])
    return left, right
''',
}
