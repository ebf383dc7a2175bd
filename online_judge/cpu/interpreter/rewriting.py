"""Turn the source of a Triton function into plain Python that the interpreter can run.

The compiler gives Python constructs their own meaning: ``and`` on blocks is element-wise, loop
variables are tensors, ``.value`` reads a constexpr. The rewritten function keeps that meaning.
"""

import ast
import types
from collections.abc import Callable, Mapping
from typing import Any

from triton.runtime.jit import JITFunction

SUPPORT = "__interpreter__"


def rewrite(kernel: JITFunction, namespace: Mapping[str, object]) -> Callable[..., object]:
    """Compile a ``@triton.jit`` function's source to Python whose globals are ``namespace``.

    Under :data:`SUPPORT` the namespace has an object with the methods ``assigned``, ``both``, ``either``,
    ``negated`` and ``value_of``.
    """
    definition = kernel.parse().body[0]
    definition.decorator_list = []
    definition.returns = None
    parameters = definition.args
    for parameter in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
        parameter.annotation = None
    parameters.defaults = []
    parameters.kw_defaults = [None] * len(parameters.kwonlyargs)
    tree = ast.Module([_Rewriter().visit(definition)], [])
    ast.fix_missing_locations(tree)
    first_line = kernel.fn.__code__.co_firstlineno
    source_lines = kernel.raw_src if isinstance(kernel.raw_src, list) else kernel.raw_src.splitlines()
    skipped = next((i for i, line in enumerate(source_lines) if line.lstrip().startswith("def ")), 0)
    ast.increment_lineno(tree, first_line + skipped - 1)
    module_code = compile(tree, kernel.fn.__code__.co_filename, "exec")
    code = next(constant for constant in module_code.co_consts if isinstance(constant, types.CodeType))
    function = types.FunctionType(code, dict(namespace), kernel.fn.__name__)
    function.__defaults__ = kernel.fn.__defaults__
    function.__kwdefaults__ = kernel.fn.__kwdefaults__
    return function


def _support(method: str, *arguments: ast.expr) -> ast.expr:
    function = ast.Attribute(ast.Name(SUPPORT, ast.Load()), method, ast.Load())
    return ast.Call(function, list(arguments), [])


def _later(expression: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), expression)


class _Rewriter(ast.NodeTransformer):
    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        match node:
            case ast.Assign():
                node.value = _support("assigned", node.value)
            case ast.AnnAssign(target=ast.Name(), value=ast.expr() as value):
                constant = "constexpr" in ast.unparse(node.annotation)
                value = value if constant else _support("assigned", value)
                return ast.copy_location(ast.Assign([node.target], value), node)
            case ast.For(iter=ast.Call(func=function), target=ast.Name(name)):
                if ast.unparse(function).rsplit(".", 1)[-1] == "range":
                    value = _support("assigned", ast.Name(name, ast.Load()))
                    node.body.insert(0, ast.Assign([ast.Name(name, ast.Store())], value))
            case ast.BoolOp(values=[result, *others]):
                method = "both" if isinstance(node.op, ast.And) else "either"
                for value in others:
                    result = _support(method, result, _later(value))
                return ast.copy_location(result, node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ast.copy_location(_support("negated", operand), node)
            case ast.Attribute(attr="value", ctx=ast.Load(), value=owner):
                return ast.copy_location(_support("value_of", owner), node)
        return node
