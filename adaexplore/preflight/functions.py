"""What functions of ``triton.language`` give, and with which values they fail: a method for each."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from adaexplore.preflight.operators import Operators
from adaexplore.preflight.values import (
    ANY,
    TYPE_NAMES,
    Block,
    Const,
    DType,
    Group,
    Shape,
    Value,
    broadcast,
    is_float,
    is_plain,
    of_number,
    promoted,
    shape_text,
)

_MAXIMA = {"max": "maximum", "min": "minimum"}
_MIN_K = 16
KEPT = ("fp32", "fp64", "int32", "int64")
"""Element types that reductions and scans keep; smaller ones are widened."""


class Functions(Operators):
    """Results of the functions that have rules of their own."""

    def tl_arange(self, node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.arange``."""
        bounds = given.get("start"), given.get("end")
        if any(
            isinstance(each, Block) or (isinstance(each, Const) and isinstance(each.value, Block))
            for each in bounds
        ):
            self.report("arange-bounds", node)
            return Block((None,), "int32")
        start, end = (each.value if isinstance(each, Const) else None for each in bounds)
        if type(start) is not int or type(end) is not int:
            return Block((None,), "int32")
        length = end - start
        if length < 1 or length & (length - 1):
            self.report("arange-range", node, start=start, end=end, length=length)
            return Block((None,), "int32")
        return self.block(node, (length,), "int32")

    def _shape(self, node: ast.AST, given: Value | None) -> Shape:
        """A block's shape from a tuple or number."""
        items = (
            given.items
            if isinstance(given, Group)
            else (given,)
            if isinstance(given, Const | Block)
            else None
        )
        if items is None:
            return None
        shape: list[int | None] = []
        for item in items:
            held = item.value if isinstance(item, Const) else item
            if isinstance(held, Block) and not held.given:
                self.report("block-shape", node, what="a value known only at run time")
                return None
            if type(held) is int and (held < 1 or held & (held - 1)):
                self.report("block-shape", node, what=held)
                return None
            shape.append(held if type(held) is int else None)
        return tuple(shape)

    def tl_zeros(self, node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.zeros``."""
        return self.block(node, self._shape(node, given.get("shape")), _dtype(given.get("dtype")))

    tl_full = tl_zeros

    def tl_zeros_like(self, _node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.zeros_like``."""
        like = given.get("input")
        return Block(like.shape, like.dtype) if isinstance(like, Block) and not like.given else ANY

    def tl_program_id(self, node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.program_id``."""
        axis = given.get("axis")
        if isinstance(axis, Const) and type(axis.value) is int and axis.value not in (0, 1, 2):
            self.report("function-arguments", node, function="program_id", what="takes an axis of 0, 1 or 2")
        return Block((), "int32")

    tl_num_programs = tl_program_id

    def tl_load(self, node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.load``."""
        pointer, mask, other = (given.get(name) for name in ("pointer", "mask", "other"))
        if not isinstance(pointer, Block):
            return ANY
        if not self._is_pointer(node, "load", pointer):
            return ANY
        if (
            mask in (None, Const(None))
            and isinstance(other, Const | Block)
            and other not in (Const(None), Const())
        ):
            self.report("load-mask", node)
        for side in (mask, other):
            if isinstance(side, Block):
                if pointer.shape == () and side.shape:
                    self.report("scalar-pointer", node, what="a block of masks or values")
                elif side.shape and pointer.shape:
                    self.fitted(node, pointer, side)
        return Block(
            pointer.shape if not pointer.given else None if pointer.shape is None else pointer.shape, None
        )

    def tl_store(self, node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.store``."""
        pointer, value = given.get("pointer"), given.get("value")
        if (
            isinstance(pointer, Block)
            and self._is_pointer(node, "store", pointer)
            and isinstance(value, Block)
        ):
            if pointer.shape == () and value.shape:
                self.report("scalar-pointer", node, what="a block")
            elif pointer.shape and value.shape:
                self.fitted(node, pointer, value)
        return Const(None)

    def _is_pointer(self, node: ast.AST, name: str, pointer: Block) -> bool:
        if is_plain(pointer.dtype):
            self.report("load-pointer", node, function=name, given=pointer)
            return False
        return True

    def tl_cast(self, node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.cast``."""
        value = given.get("input")
        if isinstance(value, DType):
            self.report(
                "function-arguments", node, function="cast", what="takes the block first, then the type"
            )
        block = of_number(value.value) if isinstance(value, Const) else value
        return Block(block.shape, _dtype(given.get("dtype"))) if isinstance(block, Block) else ANY

    def tl_where(self, node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.where``."""
        condition, *sides = (given.get(name, ANY) for name in ("condition", "x", "y"))
        result = self._pair(node, sides[0], sides[1])
        if isinstance(condition, Block) and isinstance(result, Block):
            return self.block(node, self.fitted(node, condition, result), result.dtype)
        return Block(None, result.dtype) if isinstance(result, Block) else ANY

    def tl_maximum(self, node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.maximum``."""
        return self._pair(node, given.get("x", ANY), given.get("y", ANY), weak=False)

    tl_minimum = tl_maximum

    def _pair(self, node: ast.AST, left: Value, right: Value, *, weak: bool = True) -> Value:
        """An element-wise operation on two values; ``weak`` numbers take the type of the other side."""
        blocks = [
            of_number(side.value) or Block((), None) if isinstance(side, Const) else side
            for side in (left, right)
        ]
        one, other = blocks
        if not isinstance(one, Block) or not isinstance(other, Block):
            return Block(None, None)
        numbers = (weak and isinstance(left, Const), weak and isinstance(right, Const))
        return self.block(node, self.fitted(node, one, other), promoted(one, other, None, numbers))

    def reduction(self, node: ast.AST, name: str, given: Mapping[str, Value]) -> Value:
        """``tl.sum`` and its like."""
        value, axis, keep = (
            given.get("input"),
            given.get("axis", Const(None)),
            given.get("keep_dims", Const(False)),
        )
        if (isinstance(axis, Block) and not axis.given) or (
            isinstance(axis, Const) and isinstance(axis.value, float)
        ):
            hint = f"; for two blocks use tl.{_MAXIMA[name]}" if name in _MAXIMA else ""
            self.report("function-arguments", node, function=name, what=f"takes one block and an axis{hint}")
            return ANY
        if not isinstance(value, Block) or value.shape is None or value.given:
            return Block(None, None)
        indices = given.get("return_indices", Const(False))
        if indices != Const(False) or not isinstance(axis, Const) or not isinstance(keep, Const):
            return ANY
        dtype = value.dtype if value.dtype in KEPT else None
        if name.startswith("arg"):
            dtype = "int32"
        if given.get("dtype") is not None:
            dtype = _dtype(given["dtype"])
        if axis.value is None:
            return Block(() if keep == Const(False) else None, dtype)
        if type(axis.value) is not int:
            return Block(None, dtype)
        rank = len(value.shape)
        if not -rank <= axis.value < rank:
            what = f"cannot reduce axis {axis.value} of a block with {rank} dimensions"
            self.report("function-arguments", node, function=name, what=what)
            return ANY
        shape = list(value.shape)
        shape[axis.value] = 1
        if keep == Const(False):
            del shape[axis.value]
        return Block(tuple(shape) if keep.known else None, dtype)

    def tl_dot(self, node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.dot``."""
        left, right = given.get("input"), given.get("other")
        floats = isinstance(left, Block) and isinstance(right, Block) and is_float(left.dtype or right.dtype)
        dtype = _dtype(given.get("out_dtype", DType("float32"))) if floats else None
        if (
            not isinstance(left, Block)
            or not isinstance(right, Block)
            or left.shape is None
            or right.shape is None
        ):
            return Block(None, dtype)
        what = None
        if len(left.shape) != len(right.shape) or len(left.shape) not in (2, 3):
            what = "both must have two dimensions; use tl.sum(x * y, axis) for a vector"
        elif None not in (left.shape[-1], right.shape[-2]) and left.shape[-1] != right.shape[-2]:
            what = "the inner lengths must be equal"
        elif left.shape[-1] is not None and left.shape[-1] < _MIN_K:
            what = f"the inner length must be at least {_MIN_K}"
        elif (
            left.dtype != right.dtype
            and is_plain(left.dtype)
            and is_plain(right.dtype)
            and not any(str(each.dtype).startswith("float8") for each in (left, right))
        ):
            what = "both must have the same type; convert one with .to()"
        if what is not None:
            self.report("dot-shape", node, left=left, right=right, what=what)
            return ANY
        return self.block(node, (*left.shape[:-1], right.shape[-1]), dtype)

    def tl_reshape(self, node: ast.AST, given: Mapping[str, Value], args: Sequence[Value]) -> Value:
        """``tl.reshape``."""
        value = given.get("input")
        wanted: Value | None = (
            args[1] if len(args) == 2 else Group(tuple(args[1:])) if len(args) > 2 else given.get("shape")
        )
        shape = self._shape(node, wanted)
        return self.block(node, shape, value.dtype if isinstance(value, Block) else None)

    tl_view = tl_reshape

    def tl_broadcast_to(self, node: ast.AST, given: Mapping[str, Value], args: Sequence[Value]) -> Value:
        """``tl.broadcast_to``."""
        result = self.tl_reshape(node, given, args)
        value = given.get("input")
        if isinstance(value, Block) and isinstance(result, Block) and value.shape and result.shape:
            try:
                fits = len(value.shape) == len(result.shape) and broadcast(value, result) == result.shape
            except ValueError:
                fits = False
            if not fits and None not in (*value.shape, *result.shape):
                left, right = shape_text(value.shape), shape_text(result.shape)
                self.report("shape-mismatch", node, left=left, right=right)
        return result

    def tl_expand_dims(self, _node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.expand_dims``."""
        value, axis = given.get("input"), given.get("axis")
        if not isinstance(value, Block) or value.shape is None or value.given:
            return Block(None, value.dtype if isinstance(value, Block) else None)
        if not isinstance(axis, Const) or type(axis.value) is not int:
            return Block(None, value.dtype)
        place = axis.value if axis.value >= 0 else axis.value + len(value.shape) + 1
        return Block((*value.shape[:place], 1, *value.shape[place:]), value.dtype)

    def tl_trans(self, _node: ast.AST, given: Mapping[str, Value], args: Sequence[Value]) -> Value:
        """``tl.trans``."""
        value = given.get("input")
        if isinstance(value, Block) and value.shape is not None and len(value.shape) == 2 and len(args) == 1:
            return Block(value.shape[::-1], value.dtype)
        return Block(None, value.dtype if isinstance(value, Block) else None)

    def tl_rand(self, _node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.rand``."""
        offset = given.get("offset")
        return Block(offset.shape, "fp32") if isinstance(offset, Block) else Block(None, "fp32")

    tl_randn = tl_rand

    def tl_cdiv(self, node: ast.AST, given: Mapping[str, Value], _args: object) -> Value:
        """``tl.cdiv``."""
        one, other = given.get("x", ANY), given.get("div", ANY)
        if isinstance(one, Const) or not isinstance(one, Block):
            return ANY
        return self._pair(node, one, other)


def _dtype(value: Value | None) -> str | None:
    return TYPE_NAMES.get(value.name) if isinstance(value, DType) else None
