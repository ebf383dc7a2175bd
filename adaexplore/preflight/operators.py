"""Operators inside a kernel: element types and shapes of their results, after Triton's rules."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from adaexplore.preflight import constants
from adaexplore.preflight.trace import Trace
from adaexplore.preflight.values import (
    ANY,
    POINTER,
    Anything,
    Block,
    Const,
    DType,
    Jitted,
    Method,
    Named,
    Value,
    is_float,
    is_plain,
    of_number,
    promoted,
)

_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_METHODS: Mapping[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
_SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
}


class Operators(Trace):
    """Results of operators."""

    def binary(self, node: ast.AST, operator: ast.operator, left: Value, right: Value) -> Value:
        """Arithmetic on two values."""
        if isinstance(left, Const) and isinstance(right, Const):
            return Const(constants.operate(operator, left.value, right.value))
        sign = _SIGNS[type(operator)]
        if isinstance(operator, ast.MatMult):
            self.unsupported(node, "@", "use tl.dot")
            return ANY
        numbers = isinstance(left, Const), isinstance(right, Const)
        one, other = _as_block(left), _as_block(right)
        for side, name in ((left, "left"), (right, "right")):
            if isinstance(side, DType | Named | Method | Jitted) and isinstance(
                one if name == "right" else other, Block
            ):
                if not isinstance(side, Named):
                    self.report(
                        "operand-types", node, left=_told(left), operator=sign, right=_told(right), instead=""
                    )
                return ANY
        if one is None or other is None:
            block = one or other
            if block is not None and isinstance(left if one is None else right, Anything):
                return Block(None, None)
            return ANY
        method = _METHODS[type(operator)]
        lacking = f"__{method}__" if isinstance(left, Block) else f"__r{method}__"
        if lacking not in self.api.tensor and not one.given and not other.given:
            instead = "; multiply it out, or use tl.exp2 and tl.log2" if method == "pow" else ""
            self.report("operand-types", node, left=one, operator=sign, right=other, instead=instead)
            return ANY
        if self._forbidden(operator, one, other):
            self.report("operand-types", node, left=one, operator=sign, right=other, instead="")
            return ANY
        return self.block(node, self.fitted(node, one, other), promoted(one, other, operator, numbers))

    def _forbidden(self, operator: ast.operator, one: Block, other: Block) -> bool:
        """Whether an operator surely does not take these element types."""
        types = one.dtype, other.dtype
        if POINTER in types:
            rest = types[0] if types[1] == POINTER else types[1]
            if rest == POINTER:
                return not isinstance(operator, ast.Sub)
            return not isinstance(operator, ast.Add | ast.Sub) or is_float(rest)
        return (
            isinstance(operator, _BITS)
            and any(is_float(each) for each in types)
            and all(map(is_plain, types))
        )

    def unary(self, operator: ast.unaryop, operand: Value) -> Value:
        """A sign, ``not`` or ``~``."""
        if isinstance(operand, Block):
            return Block(operand.shape, "int1" if isinstance(operator, ast.Not) else operand.dtype)
        if isinstance(operand, Const):
            match operator, operand.value:
                case ast.USub(), int() | float() as value:
                    return Const(-value)
                case ast.Not(), bool() | int() | None as value:
                    return Const(not value)
                case _:
                    return Const()
        return ANY

    def compare(self, node: ast.Compare, left: Value, right: Value) -> Value:
        """A comparison of two values; ``node`` may have more."""
        if len(node.ops) > 1:
            self.unsupported(node, "a chained comparison", "join two comparisons with &")
            return ANY
        operator = node.ops[0]
        if isinstance(operator, ast.Is | ast.IsNot):
            return _identity(left, right, positive=isinstance(operator, ast.Is))
        if isinstance(operator, ast.In | ast.NotIn):
            self.unsupported(node, "in", "compare with each value")
            return ANY
        if isinstance(left, Const) and isinstance(right, Const):
            return Const(constants.compare(operator, left.value, right.value))
        one, other = _as_block(left), _as_block(right)
        if one is None or other is None:
            return Block(None, "int1") if isinstance(left, Block) or isinstance(right, Block) else ANY
        if (
            POINTER in (one.dtype, other.dtype)
            and one.dtype != other.dtype
            and (is_plain(one.dtype) or is_plain(other.dtype))
        ):
            instead = "; pass a tl.constexpr flag such as HAS_BIAS"
            self.report(
                "operand-types", node, left=one, operator="compared with", right=other, instead=instead
            )
        shape = self.fitted(node, one, other)
        return Block(shape, "int1", given=one.given and other.given)

    def logical(self, node: ast.BoolOp, values: Sequence[Value]) -> Value:
        """``and`` or ``or`` of values."""
        settles = isinstance(node.op, ast.Or)
        blocks: list[Block] = []
        for value in values:
            if isinstance(value, Const) and isinstance(value.value, bool | int | None):
                if bool(value.value) is settles:
                    return value if not blocks else ANY
            elif isinstance(value, Block):
                blocks.append(value)
            else:
                return ANY
        if not blocks:
            return values[-1]
        result = Block(blocks[0].shape, "int1", given=blocks[0].given)
        for block in blocks[1:]:
            result = Block(self.fitted(node, result, block), "int1", given=result.given and block.given)
        return result


def _as_block(value: Value) -> Block | None:
    """A run-time value, or the scalar that a constant acts as."""
    if isinstance(value, Const):
        return of_number(value.value) if value.known else Block((), None)
    return value if isinstance(value, Block) else None


def _told(value: Value) -> str:
    match value:
        case DType(name=name):
            return f"the type tl.{name}"
        case Jitted(name=name) | Method(name=name):
            return f"the function {name}"
        case _:
            return "a number" if isinstance(value, Const) else str(value)


def _identity(left: Value, right: Value, *, positive: bool) -> Value:
    if isinstance(left, Const) and isinstance(right, Const) and left.known and right.known:
        return Const((left.value is right.value) is positive)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Block) and not one.given and other == Const(None):
            return Const(not positive)
    return Const()
