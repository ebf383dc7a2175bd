"""Expressions of ``forward`` as graph values; what is not recognised stays a host expression."""

from __future__ import annotations

import ast
import re

from adaexplore.llm.offline import build, calls
from adaexplore.llm.offline.facts import ClassFacts, Kind, Layer, ModuleFacts, dtype_type, tensor_type
from adaexplore.llm.offline.graph import (
    Axes,
    Channels,
    Constant,
    Extremum,
    Host,
    HostKind,
    Items,
    MatMul,
    Pointwise,
    ScalarType,
    Value,
    is_scalar,
    is_tensor,
    scalar_type_of,
)

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_div",
    ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.Gt: "gt", ast.GtE: "ge",
    ast.Lt: "lt", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_SCALAR_METHODS = frozenset({"size", "dim", "numel", "item", "ndimension", "nelement", "element_size"})
_TUPLE_METHODS = frozenset(
    {"chunk", "split", "unbind", "topk", "sort", "max", "min", "tensor_split", "meshgrid"}
)
_TUPLE_LAYERS = frozenset({"LSTM", "GRU", "RNN", "LSTMCell", "MultiheadAttention"})
_VIEWS = frozenset((
    "view",
    "reshape",
    "transpose",
    "permute",
    "unsqueeze",
    "squeeze",
    "flatten",
    "t",
    "contiguous",
    "expand",
    "expand_as",
    "repeat",
    "chunk",
    "split",
    "select",
    "narrow",
    "flip",
    "roll",
    "unfold",
    "movedim",
    "tril",
    "triu",
    "masked_select",
    "gather",
    "index_select",
    "clone",
    "detach",
    "view_as",
    "unbind",
    "unflatten",
    "repeat_interleave",
    "diagonal",
    "swapaxes",
))  # fmt: skip
_SCALAR_FUNCTIONS = frozenset({"int", "float", "len", "round", "bool"})


def unrolls(node: ast.AST) -> bool:
    """Return whether ``node`` is a comprehension over a tuple or list that is written out."""
    match node:
        case (
            ast.GeneratorExp(
                generators=[ast.comprehension(target=ast.Name(), iter=found, ifs=[], is_async=0)]
            )
            | ast.ListComp(generators=[ast.comprehension(target=ast.Name(), iter=found, ifs=[], is_async=0)])
        ):
            if isinstance(found, ast.Tuple | ast.List):
                return not any(isinstance(part, ast.Starred) for part in found.elts)
    return False


class Tracer:
    """Translates expressions of one straight stretch of code.

    Attributes:
        names: what each local name stands for.
        order: host calls in the order in which the reference makes them.

    With ``copies`` a clone stays a copy, for code that changes tensors in place.
    """

    def __init__(
        self, facts: ModuleFacts, owner: ClassFacts, names: dict[str, Value], copies: bool = False
    ) -> None:
        self.names = names
        self.order: list[Host] = []
        self._facts = facts
        self._owner = owner
        self._items: dict[Host, Kind] = {}
        self._copies = copies

    def expression(self, node: ast.expr) -> Value:
        """The value of ``node``."""
        number = None if isinstance(node, ast.Name) and node.id in self.names else self._facts.number(node)
        if number is not None:
            return Constant(number)
        match node:
            case ast.Name(id=name):
                return self.names.get(name) or Host(name)
            case ast.Constant():
                return Host(ast.unparse(node).replace("{", "{{").replace("}", "}}"))
            case ast.Attribute():
                return self._attribute(node)
            case ast.BinOp(left=left, op=operator, right=right):
                return self._binary(operator, self.expression(left), self.expression(right))
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                if not isinstance(operator, ast.Is | ast.IsNot | ast.In | ast.NotIn):
                    return self._binary(operator, self.expression(left), self.expression(right))
            case ast.UnaryOp(op=operator, operand=inner):
                return self._unary(operator, self.expression(inner))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                if not any(isinstance(part, ast.Starred) for part in parts):
                    brackets = "[]" if isinstance(node, ast.List) else "()"
                    return Items(tuple(self.expression(part) for part in parts), brackets)
            case ast.GeneratorExp() | ast.ListComp() if unrolls(node):
                return self._unrolled(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return self._call(node)
        return self.verbatim(node)

    def _unrolled(self, node: ast.GeneratorExp | ast.ListComp) -> Items:
        """Return the parts of a comprehension over a tuple or list that is written out."""
        loop, before = node.generators[0], dict(self.names)
        assert isinstance(loop.target, ast.Name)
        assert isinstance(loop.iter, ast.Tuple | ast.List)
        parts = []
        for value in [self.expression(part) for part in loop.iter.elts]:
            self.names[loop.target.id] = value
            parts.append(self.expression(node.elt))
        self.names = before
        return Items(tuple(parts), "[]" if isinstance(node, ast.ListComp) else "()")

    def item(self, value: Value, position: int) -> Value:
        """One part of a tuple that is taken apart."""
        if isinstance(value, Items):
            return value.values[position]
        if isinstance(value, Extremum):
            if position == 0:
                return value.values
            return self._host(f"{{0}}[{position}]", (value.host,), Kind("tensor", "i"))
        kind = self._items.get(value, Kind("other")) if isinstance(value, Host) else Kind("tensor")
        return self._host(f"{{0}}[{position}]", (value,), kind)

    def verbatim(self, node: ast.expr) -> Host:
        """``node`` as it stands, its local names replaced by their values."""
        text, found = self._spell(ast.unparse(node))
        if isinstance(node, ast.GeneratorExp):  # it may be read more than once
            text = f"tuple({text})"
        tensors = [value for value in found if is_tensor(value)]
        kind = (
            Kind("tensor", tensor_type(self._facts, node))
            if self._may_be_tensor(node, tensors)
            else Kind("other")
        )
        return self._host(f"({text})", found, kind, inline=False)

    def _spell(self, source: str, start: int = 0) -> tuple[str, tuple[Value, ...]]:
        """``source`` with its local names as placeholders from ``start`` on, and their values."""
        found: dict[str, Value] = {}

        def mark(match: re.Match[str]) -> str:
            name = match[0]
            if name in self.names:
                found.setdefault(name, self.names[name])
                return f"{{{start + list(found).index(name)}}}"
            return name.replace("{", "{{").replace("}", "}}")

        pattern = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w.])[A-Za-z_]\w*\b(?!\s*=[^=])|[{}]"""
        return re.sub(pattern, mark, source), tuple(found.values())

    def _may_be_tensor(self, node: ast.expr, tensors: list[Value]) -> bool:
        if isinstance(node, ast.IfExp):
            return bool(tensors) and not isinstance(node.body, ast.Tuple | ast.List)
        return isinstance(node, ast.Call) and self._facts.dotted(node.func).startswith("torch.")

    def _host(self, text: str, operands: tuple[Value, ...], kind: Kind, inline: bool = True) -> Host:
        host = Host(text, operands, kind.kind, kind.scalar_type, inline)
        self.order.append(host)
        return host

    def _attribute(self, node: ast.Attribute) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            kind = self._owner.attributes.get(node.attr, Kind("other"))
            return Host(f"self.{node.attr}", (), kind.kind, kind.scalar_type)
        value = self.expression(node.value)
        if isinstance(value, Extremum):
            if node.attr == "values":
                return value.values
            return self._host(f"{{0}}.{node.attr}", (value.host,), Kind("tensor", "i"))
        if is_tensor(value):
            if node.attr in ("shape", "device"):
                shape = self._host(f"{{0}}.{node.attr}", (_shape_source(value),), Kind("other"))
                self._items[shape] = Kind("scalar")
                return shape
            if node.attr in ("T", "mT", "data", "H"):
                return self._host(f"{{0}}.{node.attr}", (value,), Kind("tensor", scalar_type_of(value)))
            if node.attr == "ndim":
                return self._host("{0}.ndim", (value,), Kind("scalar"))
        if isinstance(value, Host) and not value.operands and re.fullmatch(r"self(\.\w+)+", value.text):
            tensor = (
                node.attr in ("weight", "bias") and value.text.removeprefix("self.") in self._owner.layers
            )
            return Host(f"{value.text}.{node.attr}", (), "tensor" if tensor else "other")
        return self._host(f"{{0}}.{node.attr}", (value,), Kind("other"))

    def _binary(self, operator: ast.operator | ast.cmpop, left: Value, right: Value) -> Value:
        if isinstance(operator, ast.MatMult):
            host = self._host("{0} @ {1}", (left, right), Kind("tensor"), inline=False)
            both = is_tensor(left) and is_tensor(right)
            return MatMul(left, right, None, host) if both else host
        name = _OPERATORS.get(type(operator))
        result = build.pointwise(name, left, right) if name else None
        if result is not None:
            return result
        symbol = _symbol(operator)
        tensors = [value for value in (left, right) if is_tensor(value)]
        kind: HostKind = (
            "tensor" if tensors else "scalar" if is_scalar(left) and is_scalar(right) else "other"
        )
        types: ScalarType = scalar_type_of(tensors[0]) if tensors else "f"
        return self._host(f"({{0}} {symbol} {{1}})", (left, right), Kind(kind, types), inline=not tensors)

    def _unary(self, operator: ast.unaryop, value: Value) -> Value:
        name = {ast.USub: "neg", ast.Invert: "not"}.get(type(operator))
        result = build.pointwise(name, value) if name else None
        if result is not None:
            return result
        symbol = {"USub": "-", "Invert": "~", "Not": "not ", "UAdd": "+"}[type(operator).__name__]
        kind: HostKind = "tensor" if is_tensor(value) and symbol != "not " else "other"
        return self._host(f"({symbol}{{0}})", (value,), Kind(kind, scalar_type_of(value)))

    def _subscript(self, node: ast.Subscript) -> Value:
        value = self.expression(node.value)
        index = self._facts.number(node.slice)
        if isinstance(index, int) and not is_tensor(value):
            if isinstance(value, Items) and -len(value.values) <= index < len(value.values):
                return value.values[index]
            if isinstance(value, Extremum) and index in (0, 1):
                return self.item(value, index)
            if isinstance(value, Host) and value in self._items:
                return self._host(f"{{0}}[{index}]", (value,), self._items[value])
        if isinstance(value, Extremum):
            value = value.host
        bare = ast.Subscript(ast.Name("_", ast.Load()), node.slice, ast.Load())
        text, found = self._spell(ast.unparse(bare)[2:-1], 1)
        kind = Kind("tensor", scalar_type_of(value)) if is_tensor(value) else Kind("other")
        return self._host(f"{{0}}[{text}]", (value, *found), kind)

    def _call(self, node: ast.Call) -> Value:
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
            keyword.arg is None for keyword in node.keywords
        ):
            return self._starred(node)
        positional = [self.expression(argument) for argument in node.args]
        keywords = {str(keyword.arg): self.expression(keyword.value) for keyword in node.keywords}
        layer = self._layer_of(node.func)
        if layer is not None and len(positional) == 1 and not keywords:
            return self._apply(layer, ast.unparse(node.func), positional[0])
        full = self._facts.dotted(node.func)
        short = full.removeprefix("torch.nn.functional.").removeprefix("torch.")
        if full.startswith("torch.") and "." not in short:
            return self._function(short, ast.unparse(node.func), None, positional, keywords)
        if isinstance(node.func, ast.Attribute):
            base = self.expression(node.func.value)
            if isinstance(base, Extremum):
                base = base.host
            if is_tensor(base):
                return self._function(node.func.attr, "", base, positional, keywords)
            if not (isinstance(base, Host) and not base.operands):
                return self._plain(f"{{0}}.{node.func.attr}", (base,), positional, keywords, Kind("other"))
        return self._plain(
            self._text(node.func), (), positional, keywords, self._plain_kind(node.func, layer, positional)
        )

    def _text(self, function: ast.expr) -> str:
        return ast.unparse(function).replace("{", "{{").replace("}", "}}")

    def _plain_kind(self, function: ast.expr, layer: Layer | None, positional: list[Value]) -> Kind:
        name = self._facts.dotted(function)
        if layer is not None:
            return Kind("other") if layer.name in _TUPLE_LAYERS else Kind("tensor")
        if name in _SCALAR_FUNCTIONS or name.startswith("math."):
            return Kind("scalar")
        if name in ("max", "min", "abs", "sum") and all(is_scalar(value) for value in positional):
            return Kind("scalar")
        if name.startswith("torch."):
            return Kind("tensor")
        called_self = name.startswith("self.") or ast.unparse(function).startswith("self.")
        return (
            Kind("tensor") if called_self and any(is_tensor(value) for value in positional) else Kind("other")
        )

    def _starred(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute):
            base = self.expression(node.func.value)
            if is_tensor(base):
                text, found = self._spell(", ".join(map(ast.unparse, [*node.args, *node.keywords])), 1)
                kind = Kind("tensor", scalar_type_of(base))
                return self._host(f"{{0}}.{node.func.attr}({text})", (base, *found), kind, inline=False)
        return self.verbatim(node)

    def _plain(
        self,
        function: str,
        first: tuple[Value, ...],
        positional: list[Value],
        keywords: dict[str, Value],
        kind: Kind,
    ) -> Host:
        """A call left to the host."""
        start = len(first)
        texts = [f"{{{start + position}}}" for position in range(len(positional))]
        texts += [f"{name}={{{start + len(positional) + n}}}" for n, name in enumerate(keywords)]
        host = self._host(
            f"{function}({', '.join(texts)})",
            (*first, *positional, *keywords.values()),
            kind,
            inline=kind.kind == "scalar",
        )
        name = function.rsplit(".", 1)[-1]
        if name in _TUPLE_METHODS:
            self._items[host] = Kind("tensor", scalar_type_of(first[0] if first else positional[0]))
        return host

    def _function(
        self, name: str, text: str, base: Value | None, positional: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """A call of ``torch.<name>`` or of a tensor's method ``name``."""
        if name in ("max", "min") and base is None and positional and is_scalar(positional[0]):
            return self._plain(text, (), positional, keywords, Kind("tensor"))
        if base is not None and name in ("size", "dim", "numel"):
            source = _shape_source(base)
            kind = Kind("scalar") if positional or keywords or name != "size" else Kind("other")
            shape = self._plain(f"{{0}}.{name}", (source,), positional, keywords, kind)
            if kind.kind == "other":
                self._items[shape] = Kind("scalar")
            return shape
        wraps = base is None and name in ("tensor", "as_tensor", "scalar_tensor") and positional
        if wraps and is_scalar(positional[0]):
            return self._host(build.WRAPPED, (positional[0],), Kind("tensor"), inline=False)
        kind = self._result_kind(name, base, positional, keywords)
        function = text or f"{{0}}.{name}"
        if base is not None and name in (
            "to",
            "type",
            "type_as",
            "half",
            "bfloat16",
            "double",
            "int",
            "long",
        ):
            return self._conversion(name, base, positional, keywords, kind)
        host = self._plain(function, () if base is None else (base,), positional, keywords, kind)
        arguments = positional if base is None else [base, *positional]
        if calls.understood(name) and not (self._copies and name in ("clone", "detach", "contiguous")):
            if base is not None and name == "where" and arguments:
                arguments = [arguments[1], arguments[0], *arguments[2:]]
            named = dict(keywords)
            if "input" in named and base is None:
                arguments = [named.pop("input"), *arguments]
            elif "condition" in named:
                arguments = [named.pop("condition"), *arguments]
            elif "tensor" in named and base is None:
                arguments = [named.pop("tensor"), *arguments]
            bound = calls.bind(name, arguments, named, host)
            result = calls.translate(name, bound) if bound is not None else None
            if result is not None:
                return result
        return host

    def _conversion(
        self, name: str, base: Value, positional: list[Value], keywords: dict[str, Value], kind: Kind
    ) -> Value:
        texts = [value.text for value in [*positional, *keywords.values()] if isinstance(value, Host)]
        if name == "to" and len(texts) == 1 and texts[0] in ("torch.float32", "torch.float"):
            return Pointwise("to_float", (base,), "f")
        if name == "to" and len(texts) == 1 and texts[0] == "torch.bool":
            return Pointwise("to_bool", (base,), "b")
        return self._plain(f"{{0}}.{name}", (base,), positional, keywords, kind)

    def _result_kind(
        self, name: str, base: Value | None, positional: list[Value], keywords: dict[str, Value]
    ) -> Kind:
        if name in _SCALAR_METHODS and base is not None:
            return Kind("scalar")
        if name in _TUPLE_METHODS or name in ("tolist", "size", "stride", "is_contiguous"):
            return Kind("other")
        dtype = keywords.get("dtype")
        if isinstance(dtype, Host) and dtype.text.startswith("torch."):
            return Kind("tensor", dtype_type(dtype.text))
        if name in ("argmax", "argmin", "arange", "randint", "argsort", "long", "int"):
            return Kind("tensor", "i")
        if (
            name == "to"
            and positional
            and isinstance(positional[0], Host)
            and positional[0].text.startswith("torch.")
        ):
            return Kind("tensor", dtype_type(positional[0].text))
        source = base if base is not None else positional[0] if positional else None
        if name in _VIEWS and source is not None and is_tensor(source):
            return Kind("tensor", scalar_type_of(source))
        if name in ("any", "all", "bool", "isfinite", "isinf", "logical_not"):
            return Kind("tensor", "b")
        if base is None and name in ("is_tensor", "device", "Size", "is_floating_point"):
            return Kind("other")
        return Kind("tensor", "f")

    def _layer_of(self, function: ast.expr) -> Layer | None:
        match function:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self._owner.layers.get(name)
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id="self"), attr=name),
                slice=ast.Constant(value=int() as index),
            ):
                layer = self._owner.layers.get(name)
                if layer is not None and layer.name == "Sequential" and 0 <= index < len(layer.parts):
                    return layer.parts[index]
        return None

    def _apply(self, layer: Layer, path: str, value: Value) -> Value:
        """The layer's result, layer by layer for a Sequential."""
        if layer.name == "Sequential":
            for position, part in enumerate(layer.parts):
                value = self._apply(part, f"{path}[{position}]", value)
            return value
        kind = Kind("other") if layer.name in _TUPLE_LAYERS else Kind("tensor")
        host = self._host(f"{path}({{0}})", (value,), kind, inline=False)
        name = calls.MODULES.get(layer.name)
        if name is None or not is_tensor(value):
            return self._instance_norm(layer, path, value) or host if is_tensor(value) else host
        options = _options(self._facts, layer, path)
        if options is None:
            return host
        if name in ("layer_norm", "rms_norm", "group_norm", "linear"):
            return self._with_weights(name, layer, path, value, options, host) or host
        if name.endswith("_loss"):
            return host
        bound = calls.bind(name, [value], options, host)
        return (calls.translate(name, bound) if bound is not None else None) or host

    def _instance_norm(self, layer: Layer, path: str, value: Value) -> Value | None:
        if not re.fullmatch(r"InstanceNorm[123]d", layer.name):
            return None
        if len(layer.call.args) > 1 or {k.arg for k in layer.call.keywords} - {"eps", "num_features"}:
            return None
        rank = int(layer.name[12]) + 2
        axes = Axes(repr(tuple(range(2 - rank, 0))) if rank > 3 else "-1")
        return build.standardise(value, axes, Host(f"{path}.eps", (), "scalar"))

    def _with_weights(
        self, name: str, layer: Layer, path: str, value: Value, options: dict[str, Value], host: Host
    ) -> Value | None:
        switch = {
            "layer_norm": "elementwise_affine",
            "rms_norm": "elementwise_affine",
            "group_norm": "affine",
        }
        flags = {key: _flag(options.get(key)) for key in (switch.get(name, ""), "bias")}
        if None in flags.values():
            return None
        weight = Host(f"{path}.weight", (), "tensor") if flags[switch.get(name, "")] else None
        has_bias = flags["bias"] and name != "rms_norm" and (name == "linear" or weight is not None)
        bias = Host(f"{path}.bias", (), "tensor") if has_bias else None
        if name == "linear":
            right = Host("{0}.weight.t()".replace("{0}", path), (), "tensor")
            return MatMul(value, right, bias, host)
        epsilon: Value = options.get("eps") or Constant(1e-5)
        if name == "rms_norm" and "eps" not in options:
            return None
        if name == "group_norm":
            axes = Axes(f"{path}.num_groups", grouped=True)
            weight_value: Value | None = None if weight is None else Channels(weight)
            bias_value: Value | None = None if bias is None else Channels(bias)
        else:
            shape = options.get("normalized_shape")
            single = isinstance(shape, Constant)
            axes = Axes("-1" if single else f"tuple(range(-len({path}.normalized_shape), 0))")
            weight_value, bias_value = weight, bias
        return build.scaled(
            build.standardise(value, axes, epsilon, name != "rms_norm"), weight_value, bias_value
        )


_CONSTRUCTORS: dict[str, tuple[str, ...]] = {
    "LeakyReLU": ("negative_slope", "inplace"), "ELU": ("alpha", "inplace"), "CELU": ("alpha", "inplace"),
    "GELU": ("approximate",), "Softplus": ("beta", "threshold"),
    "Hardtanh": ("min_val", "max_val", "inplace"),
    "Softshrink": ("lambd",), "Hardshrink": ("lambd",), "Threshold": ("threshold", "value", "inplace"),
    "Softmax": ("dim",), "LogSoftmax": ("dim",), "Linear": ("in_features", "out_features", "bias"),
    "LayerNorm": ("normalized_shape", "eps", "elementwise_affine", "bias"),
    "RMSNorm": ("normalized_shape", "eps", "elementwise_affine"),
    "GroupNorm": ("num_groups", "num_channels", "eps", "affine"), "Identity": (),
}  # fmt: skip


def _symbol(operator: ast.operator | ast.cmpop) -> str:
    """How an operator is written."""
    left, right = ast.Name("a"), ast.Name("b")
    joined = (
        ast.BinOp(left, operator, right)
        if isinstance(operator, ast.operator)
        else ast.Compare(left, [operator], [right])
    )
    return ast.unparse(joined)[2:-2]


def _options(facts: ModuleFacts, layer: Layer, path: str) -> dict[str, Value] | None:
    """A layer's constructor arguments: literals as they are, others read from the layer."""
    names = _CONSTRUCTORS.get(layer.name, ("inplace",))
    if layer.name == "Identity":
        return {}
    if len(layer.call.args) > len(names) or any(isinstance(a, ast.Starred) for a in layer.call.args):
        return None
    given = dict(zip(names, layer.call.args, strict=False))
    for keyword in layer.call.keywords:
        if keyword.arg is None:
            return None
        given[keyword.arg] = keyword.value
    options: dict[str, Value] = {}
    for name, node in given.items():
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                options[name] = Constant(number)
            case ast.Constant():
                options[name] = Host(ast.unparse(node))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                options[name] = Constant(-number)
            case _:
                options[name] = Host(f"{path}.{name}", (), "scalar")
    options.pop("inplace", None)
    return options


def _flag(value: Value | None) -> bool | None:
    """A literal switch, True where left out, None where it is not a literal."""
    if value is None:
        return True
    return bool(value.number) if isinstance(value, Constant) else None


def _shape_source(value: Value) -> Value:
    """A value of the same shape that needs no computing, where that is certain."""
    while isinstance(value, Pointwise):
        tensors = {operand for operand in value.operands if is_tensor(operand)}
        if len(tensors) != 1:
            sources = {_shape_source(operand) for operand in tensors}
            return sources.pop() if len(sources) == 1 else value
        value = tensors.pop()
    return value
