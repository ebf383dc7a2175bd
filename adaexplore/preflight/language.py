"""What calls of ``triton.language`` give, and with which arguments they fail."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from adaexplore.preflight.candidate import CONSTEXPR
from adaexplore.preflight.functions import KEPT, Functions
from adaexplore.preflight.host_lints import missing_name
from adaexplore.preflight.triton_api import Signature
from adaexplore.preflight.values import (
    ANY,
    Block,
    Const,
    Value,
    is_plain,
)

_REDUCTIONS = ("sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce_or")
_CONVERSIONS = {"float": "convert with x.to(tl.float32)", "int": "convert with x.to(tl.int32)"}
_TENSOR_INSTEAD = {
    "astype": "; use x.to(dtype)",
    "at": "; make a new block with tl.where",
    "float": "; use x.to(tl.float32)",
}
_KEYWORD_INSTEAD = {
    ("load", "dtype"): "; convert the result with .to(dtype)",
    ("arange", "dtype"): "; convert the result with .to(dtype)",
    ("store", "other"): "; only tl.load has it",
    ("max", "initial"): "; combine with tl.maximum",
    ("sum", "keepdim"): "; it is called keep_dims",
    ("max", "keepdim"): "; it is called keep_dims",
    ("min", "keepdim"): "; it is called keep_dims",
}


class LanguageCalls(Functions):
    """Results of calls into Triton's language."""

    def report_missing(self, path: str, node: ast.AST) -> None:
        """A name that Triton lacks."""
        found = missing_name(path, getattr(node, "lineno", 1), self.api)
        name = path.replace("triton.language", "tl", 1)
        instead = found.message.partition(self.api.version)[2]
        self.report("missing-triton-name", node, name=name, version=self.api.version, instead=instead)

    def report_tensor_attribute(self, name: str, node: ast.AST) -> None:
        """An attribute that tensors lack."""
        self.report(
            "tensor-attribute", node, name=name, instead=_TENSOR_INSTEAD.get(name, "; use a function of tl")
        )

    def named_call(
        self, node: ast.Call, path: str, args: Sequence[Value], words: Mapping[str, Value]
    ) -> Value:
        """A call of something imported or built in."""
        module, _, name = path.rpartition(".")
        if module == "builtins" or module == "math":
            if name in ("float", "int") or module == "math":
                if any(isinstance(arg, Block) and not arg.given for arg in args):
                    instead = _CONVERSIONS.get(name, f"use tl.{name} or libdevice.{name}")
                    self.report(
                        "constant-of-tensor",
                        node,
                        name=name if module == "builtins" else path,
                        instead=instead,
                    )
                    return ANY
                return Const() if all(isinstance(arg, Const) for arg in args) else ANY
            return ANY
        if path in CONSTEXPR:
            return args[0] if args and isinstance(args[0], Const) else ANY
        if module in ("triton.language", "triton.language.math"):
            return self.language_call(node, name, args, words)
        return ANY

    def language_call(
        self,
        node: ast.Call,
        name: str,
        args: Sequence[Value],
        words: Mapping[str, Value],
        *,
        method: bool = False,
    ) -> Value:
        """A call of ``tl.name``; of a tensor's method, with the tensor in front."""
        if name == "to":
            name = "cast"
        signature = self.api.signatures.get(name)
        if signature is None:
            return ANY
        given = self._bound(node, name, signature, args, words)
        if given is None:
            return ANY
        self._check_types(node, name, given)
        compute = getattr(self, f"tl_{name}", None)
        if compute is not None:
            result: Value = compute(node, given, args)
            return result
        if name in _REDUCTIONS:
            return self.reduction(node, name, given)
        if name in self.api.dtypes or name in (
            "abs",
            "sigmoid",
            "softmax",
            "cumsum",
            "cumprod",
            "flip",
            "sort",
        ):
            first = given.get(signature.names[0])
            if not isinstance(first, Block):
                return ANY
            return Block(first.shape, first.dtype if first.dtype in KEPT else None)
        if name in ("multiple_of", "max_contiguous", "max_constancy"):
            return given.get("input", ANY)
        return ANY

    def _bound(
        self,
        node: ast.AST,
        name: str,
        signature: Signature,
        args: Sequence[Value],
        words: Mapping[str, Value],
    ) -> dict[str, Value] | None:
        """Arguments by parameter; None if they do not fit."""
        for word in words:
            if word not in (*signature.names, *signature.keywords) and not signature.open_keywords:
                instead = _KEYWORD_INSTEAD.get((name, word), "; leave it out")
                self.report("unknown-keyword", node, function=name, name=word, instead=instead)
                return None
        if len(args) > len(signature.names) and not signature.open_positions:
            what = f"takes {len(signature.names)} arguments, not {len(args)}"
            self.report("function-arguments", node, function=name, what=what)
            return None
        given = dict(zip(signature.names, args, strict=False))
        twice = given.keys() & words.keys()
        missing = [
            each for each in signature.names[: signature.required] if each not in given and each not in words
        ]
        if twice or missing:
            what = f"gets {min(twice)} twice" if twice else f"needs {', '.join(missing)}"
            self.report("function-arguments", node, function=name, what=what)
            return None
        return {**given, **words}

    def _check_types(self, node: ast.AST, name: str, given: Mapping[str, Value]) -> None:
        accepted = self.api.dtypes.get(name)
        for value in given.values() if accepted else ():
            if (
                isinstance(value, Block)
                and is_plain(value.dtype)
                and value.dtype not in (*(accepted or ()), "integer")
            ):
                types = " and ".join(accepted or ())
                self.report("function-dtype", node, function=name, accepted=types, given=value.dtype)
