"""Translate expressions of ``forward`` into graph values; unknown ones stay host expressions."""

import ast
import copy
import re

from adaexplore.core.text.arithmetic import operate
from adaexplore.offline_writer.tracing import build, calls
from adaexplore.offline_writer.tracing.facts import (
    FLOATS,
    INTEGERS,
    OTHER,
    SCALAR,
    ClassFacts,
    Kind,
    Layer,
    ModuleFacts,
    tensor_kind,
)
from adaexplore.offline_writer.tracing.graph import (
    Axes,
    Constant,
    Host,
    Items,
    MatMul,
    Pointwise,
    Value,
    is_scalar,
    is_tensor,
    scalar_type_of,
)

_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("add", "+"), ast.Sub: ("sub", "-"), ast.Mult: ("mul", "*"), ast.Div: ("div", "/"),
    ast.FloorDiv: ("", "//"), ast.Mod: ("", "%"), ast.Pow: ("pow", "**"), ast.BitAnd: ("and", "&"),
    ast.BitOr: ("or", "|"), ast.Gt: ("gt", ">"), ast.GtE: ("ge", ">="), ast.Lt: ("lt", "<"),
    ast.LtE: ("le", "<="), ast.Eq: ("eq", "=="), ast.NotEq: ("ne", "!="), ast.MatMult: ("matmul", "@"),
    ast.USub: ("neg", "-"), ast.Invert: ("not", "~"), ast.UAdd: ("", "+"), ast.Not: ("", "not "),
}  # fmt: skip
_READABLE = (
    ast.Name, ast.Constant, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.List,
    ast.Subscript, ast.Slice, ast.Call, ast.comprehension, ast.expr_context, *_OPERATORS,
)  # fmt: skip
_SCALARS = frozenset({"size", "dim", "numel", "item"})
_NUMBERS = frozenset({"int", "float", "len", "round", "bool"})
_TUPLES = frozenset({"chunk", "split", "unbind", "topk", "sort", "max", "min", "tensor_split", "meshgrid"})
_TUPLE_LAYERS = frozenset({"LSTM", "GRU", "RNN", "LSTMCell", "MultiheadAttention"})
_OTHERS = frozenset({
    "tolist", "stride", "is_contiguous", "is_tensor", "Size", "is_floating_point", "device", *_TUPLES
})  # fmt: skip
_INTEGERS = frozenset({"argmax", "argmin", "argsort", "arange", "randint", "long", "int"})
_BOOLEANS = frozenset({"any", "all", "bool", "isfinite", "isinf", "isnan", "logical_not"})
_FLOATING = frozenset({"float", "half", "one_hot", "embedding"})


def readable(statement: ast.Assign | ast.AugAssign | ast.Return) -> bool:
    """Return True if a :class:`Tracer` reads the right side of a statement."""
    nodes = [] if statement.value is None else list(ast.walk(statement.value))
    for node in [*nodes, statement.op] if isinstance(statement, ast.AugAssign) else nodes:
        match node:
            case ast.Constant(value=str() | bytes()):
                fits = not set("{}") & set(ast.unparse(node))
            case ast.keyword(arg=name):
                fits = name is not None
            case ast.Compare(ops=ops):
                fits = len(ops) == 1
            case ast.GeneratorExp(generators=[loop]) | ast.ListComp(generators=[loop]):
                fits = isinstance(loop.iter, ast.Tuple | ast.List) and isinstance(loop.target, ast.Name)
                fits = fits and not loop.ifs
            case _:
                fits = isinstance(node, _READABLE)
        if not fits:
            return False
    return True


class Tracer:
    """Translates the expressions of one straight stretch of code.

    Attributes:
        names: the value of each local name.
        order: host calls in the order in which the reference makes them.
    """

    def __init__(self, facts: ModuleFacts, owner: ClassFacts, names: dict[str, Value]) -> None:
        self.names = names
        self.order: list[Host] = []
        self._facts = facts
        self._owner = owner
        self._items: dict[Value, Kind] = {}

    def expression(self, node: ast.expr) -> Value:
        number = None if isinstance(node, ast.Name) and node.id in self.names else self._facts.number(node)
        if number is not None:
            return Constant(number)
        match node:
            case ast.Name(id=name):
                return self.names.get(name) or Host(name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.BinOp(left=left, op=operator, right=right):
                return self._binary(operator, self.expression(left), self.expression(right))
            case ast.Compare(left=left, ops=[comparison], comparators=[right]):
                return self._binary(comparison, self.expression(left), self.expression(right))
            case ast.UnaryOp(op=sign, operand=inner):
                return self._unary(sign, self.expression(inner))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                brackets = "[]" if isinstance(node, ast.List) else "()"
                return Items(tuple(self.expression(part) for part in parts), brackets)
            case ast.GeneratorExp(elt=part, generators=[loop]) | ast.ListComp(elt=part, generators=[loop]):
                return self._unrolled(part, loop, "[]" if isinstance(node, ast.ListComp) else "()")
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return self._call(node)
        return Host(ast.unparse(node))

    def _unrolled(self, part: ast.expr, loop: ast.comprehension, brackets: str) -> Items:
        """Return the parts of a comprehension over a literal tuple or list."""
        assert isinstance(loop.target, ast.Name)
        assert isinstance(loop.iter, ast.Tuple | ast.List)
        before, parts = dict(self.names), []
        for value in [self.expression(each) for each in loop.iter.elts]:
            self.names[loop.target.id] = value
            parts.append(self.expression(part))
        self.names = before
        return Items(tuple(parts), brackets)

    def item(self, value: Value, position: int) -> Value:
        """Return one part of an unpacked tuple."""
        if isinstance(value, Items):
            return value.values[position]
        kind = self._items.get(value, OTHER) if isinstance(value, Host) else FLOATS
        return self._host(f"{{0}}[{position}]", (value,), kind)

    def _host(self, text: str, operands: tuple[Value, ...], kind: Kind, inline: bool = True) -> Host:
        host = Host(text, operands, kind.kind, kind.scalar_type, inline)
        self.order.append(host)
        return host

    def _attribute(self, node: ast.Attribute) -> Value:
        name = node.attr
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            kind = self._owner.attributes.get(name, OTHER)
            return Host(f"self.{name}", (), kind.kind, kind.scalar_type)
        value = self.expression(node.value)
        if isinstance(value, Items) and name in ("values", "indices"):  # of torch.max(x, dim)
            return value.values[name == "indices"]
        if is_tensor(value) and name in ("shape", "device"):
            shape = self._host(f"{{0}}.{name}", (_shape_source(value),), OTHER)
            self._items[shape] = SCALAR
            return shape
        if is_tensor(value) and name in ("T", "mT", "data"):
            return self._host(f"{{0}}.{name}", (value,), Kind("tensor", scalar_type_of(value)))
        if isinstance(value, Host) and not value.operands and re.fullmatch(r"self(\.\w+)+", value.text):
            weights = name in ("weight", "bias") and value.text.removeprefix("self.") in self._owner.layers
            return Host(f"{value.text}.{name}", (), "tensor" if weights else "other")
        return self._host(f"{{0}}.{name}", (value,), OTHER)

    def _binary(self, operator: ast.operator | ast.cmpop, left: Value, right: Value) -> Value:
        name, symbol = _OPERATORS[type(operator)]
        tensors = [value for value in (left, right) if is_tensor(value)]
        if name == "matmul":
            host = self._host("{0} @ {1}", (left, right), FLOATS, inline=False)
            return MatMul(left, right, None, host) if len(tensors) == 2 else host
        if isinstance(operator, ast.operator) and isinstance(left, Constant) and isinstance(right, Constant):
            number = operate(operator, left.number, right.number)
            if number is not None:
                return Constant(number)
        result = build.pointwise(name, left, right) if name else None
        if result is not None:
            return result
        kind = SCALAR if is_scalar(left) and is_scalar(right) else OTHER
        if tensors:
            kind = Kind("tensor", scalar_type_of(tensors[0]))
        return self._host(f"({{0}} {symbol} {{1}})", (left, right), kind, inline=not tensors)

    def _unary(self, operator: ast.unaryop, value: Value) -> Value:
        name, symbol = _OPERATORS[type(operator)]
        result = build.pointwise(name, value) if name else None
        if result is not None:
            return result
        kind = SCALAR if is_scalar(value) and name == "neg" else OTHER
        if is_tensor(value):
            kind = Kind("tensor", scalar_type_of(value))
        return self._host(f"({symbol}{{0}})", (value,), kind)

    def _subscript(self, node: ast.Subscript) -> Value:
        value = self.expression(node.value)
        index = self._facts.number(node.slice)
        if isinstance(index, int) and not is_tensor(value):
            if isinstance(value, Items) and -len(value.values) <= index < len(value.values):
                return value.values[index]
            if value in self._items:
                return self._host(f"{{0}}[{index}]", (value,), self._items[value])
        text, found = self._spell(node.slice)
        kind = Kind("tensor", scalar_type_of(value)) if is_tensor(value) else OTHER
        return self._host(f"{{0}}[{text}]", (value, *found), kind)

    def _spell(self, index: ast.expr) -> tuple[str, list[Value]]:
        """Return the text of an index with placeholders from 1 on for local names, and their values."""
        bare, found = ast.Subscript(ast.Name("_"), copy.deepcopy(index)), list[Value]()
        for node in ast.walk(bare.slice):
            if isinstance(node, ast.Name) and node.id in self.names:
                found.append(self.names[node.id])
                node.id = f"{{{len(found)}}}"
        return ast.unparse(bare)[2:-1], found

    def _call(self, node: ast.Call) -> Value:
        positional = [self.expression(argument) for argument in node.args]
        keywords = {str(keyword.arg): self.expression(keyword.value) for keyword in node.keywords}
        text, full = ast.unparse(node.func), self._facts.dotted(node.func)
        layer = self._owner.layers.get(text.removeprefix("self.")) if text.startswith("self.") else None
        if layer is not None and len(positional) == 1 and not keywords:
            return self._apply(layer, text, positional[0])
        short = full.removeprefix("torch.nn.functional.").removeprefix("torch.")
        if full.startswith("torch.") and "." not in short:
            return self._function(short, text, None, positional, keywords)
        if isinstance(node.func, ast.Attribute):
            base = self.expression(node.func.value)
            if is_tensor(base):
                return self._function(node.func.attr, "", base, positional, keywords)
            if not isinstance(base, Host) or base.operands:
                return self._plain(f"{{0}}.{node.func.attr}", [base], positional, keywords, OTHER)
        arithmetic = full in ("max", "min", "abs", "sum") and all(map(is_scalar, positional))
        kind = OTHER
        if layer is not None:
            kind = OTHER if layer.name in _TUPLE_LAYERS else FLOATS
        elif full.startswith("torch.") or (text.startswith("self.") and any(map(is_tensor, positional))):
            kind = FLOATS
        elif arithmetic or full in _NUMBERS or full.startswith("math."):
            kind = SCALAR
        return self._plain(text, [], positional, keywords, kind)

    def _plain(
        self,
        function: str,
        first: list[Value],
        positional: list[Value],
        keywords: dict[str, Value],
        kind: Kind,
    ) -> Host:
        texts = [*("" for _ in positional), *(f"{name}=" for name in keywords)]
        arguments = ", ".join(f"{text}{{{len(first) + n}}}" for n, text in enumerate(texts))
        operands = (*first, *positional, *keywords.values())
        host = self._host(f"{function}({arguments})", operands, kind, inline=kind == SCALAR)
        if operands and function.rpartition(".")[2] in _TUPLES:
            self._items[host] = Kind("tensor", scalar_type_of(operands[0]))
        return host

    def _function(
        self, name: str, text: str, base: Value | None, positional: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """Return a call of ``torch.<name>`` or of a tensor's method ``name``."""
        if base is not None and name in ("size", "dim", "numel"):
            whole = name == "size" and not positional and not keywords
            kind = OTHER if whole else SCALAR
            shape = self._plain(f"{{0}}.{name}", [_shape_source(base)], positional, keywords, kind)
            if whole:
                self._items[shape] = SCALAR
            return shape
        if base is None and name == "tensor" and positional and is_scalar(positional[0]):
            return self._host(build.WRAPPED, (positional[0],), FLOATS, inline=False)
        first = [] if base is None else [base]
        arguments = [*first, *positional]
        kind = self._result_kind(name, base, arguments, keywords)
        host = self._plain(text or f"{{0}}.{name}", first, positional, keywords, kind)
        if name == "where" and base is not None:
            return host
        bound = calls.bind(name, arguments, keywords, host)
        return (calls.translate(name, bound) if bound is not None else None) or host

    def _result_kind(
        self, name: str, base: Value | None, arguments: list[Value], keywords: dict[str, Value]
    ) -> Kind:
        """Return the kind of a torch call's result: by default a floating tensor."""
        if name in _SCALARS and base is not None:
            return SCALAR
        dtype = keywords.get("dtype") or (arguments[1] if name == "to" and len(arguments) > 1 else None)
        if isinstance(dtype, Host) and dtype.text.startswith("torch."):
            return tensor_kind(dtype.text)
        if name in _OTHERS:
            return OTHER
        if name in _INTEGERS:
            return INTEGERS
        if name in _BOOLEANS:
            return Kind("tensor", "b")
        known = arguments and is_tensor(arguments[0]) and name not in _FLOATING
        return Kind("tensor", scalar_type_of(arguments[0])) if known else FLOATS

    def _apply(self, layer: Layer, path: str, value: Value) -> Value:
        if layer.name == "Sequential":
            for position, part in enumerate(layer.parts):
                value = self._apply(part, f"{path}[{position}]", value)
            return value
        kind = OTHER if layer.name in _TUPLE_LAYERS else FLOATS
        host = self._host(f"{path}({{0}})", (value,), kind, inline=False)
        if not is_tensor(value):
            return host
        if layer.name == "Identity":
            return value
        if layer.name.startswith("InstanceNorm"):
            return self._instance_norm(layer, path, value) or host
        name, *parameters = calls.LAYERS.get(layer.name, ("",))
        options = _options(layer, path, parameters) if name else None
        if options is None or not _with_weights(name, path, options):
            return host
        return calls.translate(name, calls.Call({"": value, **options}, host)) or host

    def _instance_norm(self, layer: Layer, path: str, value: Value) -> Value | None:
        if len(layer.call.args) > 1 or {k.arg for k in layer.call.keywords} - {"eps", "num_features"}:
            return None
        rank = int(layer.name[12]) + 2
        axes = Axes(repr(tuple(range(2 - rank, 0))) if rank > 3 else "-1")
        return build.standardise(value, axes, Host(f"{path}.eps", (), "scalar"))


def _with_weights(name: str, path: str, options: dict[str, Value]) -> bool:
    """Add the layer's weight and bias to its options; return False if it is unknown whether it has them."""
    if name not in ("linear", "layer_norm", "rms_norm", "group_norm"):
        return True
    flags = [options.pop(key, Constant(True)) for key in ("elementwise_affine", "affine", "bias")]
    if not all(isinstance(flag, Constant) for flag in flags):
        return False
    affine, biased = all(f.number for f in flags[:2] if isinstance(f, Constant)), flags[2]
    if affine:
        options["weight"] = Host(f"{path}.weight", (), "tensor")
    if affine and name != "rms_norm" and isinstance(biased, Constant) and biased.number:
        options["bias"] = Host(f"{path}.bias", (), "tensor")
    if name == "group_norm":
        options["num_groups"] = Host(f"{path}.num_groups")
    elif "normalized_shape" in options and not isinstance(options["normalized_shape"], Constant):
        options["normalized_shape"] = Host(f"{path}.normalized_shape")
    return True


def _options(layer: Layer, path: str, names: list[str]) -> dict[str, Value] | None:
    """Return a layer's constructor arguments: literals unchanged, others read from the layer."""
    keywords = {str(keyword.arg): keyword.value for keyword in layer.call.keywords}
    if len(layer.call.args) > len(names) or not keywords.keys() <= set(names):
        return None
    options: dict[str, Value] = {}
    for name, node in (dict(zip(names, layer.call.args, strict=False)) | keywords).items():
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                options[name] = Constant(number)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                options[name] = Constant(-number)
            case ast.Constant():
                options[name] = Host(ast.unparse(node))
            case _:
                options[name] = Host(f"{path}.{name}", (), "scalar")
    return options


def _shape_source(value: Value) -> Value:
    """Return an existing value that certainly has the same shape, if there is one."""
    while isinstance(value, Pointwise):
        tensors = {operand for operand in value.operands if is_tensor(operand)}
        if len(tensors) != 1:
            sources = {_shape_source(operand) for operand in tensors}
            return sources.pop() if len(sources) == 1 else value
        value = tensors.pop()
    return value
