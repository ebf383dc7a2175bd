"""The lints: each has an id, and a message that says what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Finding:
    """What is wrong, and where.

    Attributes:
        rule: id of the lint, a key of :data:`LINTS`.
        line: of the source, from 1.
        message: one line that says what to do instead.
    """

    rule: str
    line: int
    message: str


LINTS: Mapping[str, str] = MappingProxyType(
    {
        # the module
        "syntax": "not valid Python: {what}",
        "no-model": "the module defines no class ModelNew; define class ModelNew(nn.Module)",
        "no-forward": "ModelNew has no forward method; define forward with the parameters of the reference's",
        "init-arity": "ModelNew.__init__ {what}; take the parameters of the reference's __init__",
        "undefined-name": "{name} is not defined anywhere in this module; define or import it",
        "undefined-attribute": "self.{name} is read but {owner} never sets it; set it in __init__",
        "call-arguments": "{name}() {what}; call it with the parameters that it has",
        "missing-triton-name": "{name} does not exist in Triton {version}{instead}",
        # the launch
        "launch-missing-argument": "the launch of {kernel} gives no value for {name}; pass it by name",
        "launch-unknown-argument": "{kernel} has no parameter {name}, and no launch option is called so; "
        "leave it out{hint}",
        "launch-duplicate-argument": "{kernel} gets {name} twice, by position and by name; pass it once",
        "launch-tuned-argument": "the autotune configs of {kernel} set {name}; leave it out of the launch",
        "kernel-called": "{kernel} is called like a function; launch it as {kernel}[grid](...)",
        "grid-type": "the grid of {kernel} holds a {what}; give it one to three integers",
        "num-warps": "num_warps is {value}; it must be a power of two",
        "config-attribute": "triton.Config has no attribute {name}; read a config's values from .kwargs",
        # the kernel
        "unsupported-syntax": "{what} is not possible in a kernel; {instead}",
        "nested-function": "a function is defined in a kernel; define it at module level with @triton.jit",
        "non-constexpr-global": "the kernel reads the global {name}; pass it as a tl.constexpr parameter, or "
        "define it as tl.constexpr({value})",
        "plain-function": "the kernel uses {name}, which has no @triton.jit; decorate it, or write it inline",
        "undefined-in-kernel": "{name} is not defined in the kernel; assign it before it is read",
        "lost-after-block": "{name} is assigned inside a loop or a run-time if only, and unknown after it; "
        "assign it before",
        "called-dtype": "{name} is a type and cannot be called; convert with x.to({name}), or make a block "
        "with tl.full(shape, value, {name})",
        "tensor-attribute": "a tensor in a kernel has no attribute {name}{instead}",
        "unknown-keyword": "tl.{function} takes no argument {name}{instead}",
        "function-arguments": "tl.{function} {what}",
        "block-index": "a block cannot be indexed by a value or a part of a range, only by ':' and None; "
        "load the part that is needed, or select with tl.where and tl.sum",
        "block-store": "an element of a block cannot be assigned; make a new block with tl.where",
        "arange-bounds": "tl.arange takes compile-time bounds; use tl.constexpr parameters, or annotate the "
        "variable: NAME: tl.constexpr = ...",
        "arange-range": "tl.arange({start}, {end}) has a length of {length}; it must be a power of two",
        "block-shape": "a block's shape must be made of powers of two known at compile time, not {what}",
        "block-size": "a block of {count} elements is too large, the limit is 1048576; loop over parts",
        "function-dtype": "tl.{function} takes {accepted}, not {given}; convert with .to(tl.float32) first",
        "load-pointer": "tl.{function} takes pointers, not {given}; pass the tensor and add offsets",
        "load-mask": "tl.load takes other= only together with mask=",
        "scalar-pointer": "{what} does not go with a scalar pointer; add tl.arange offsets to the pointer",
        "operand-types": "{left} {operator} {right} is not possible in a kernel{instead}",
        "shape-mismatch": "blocks of shapes {left} and {right} do not fit; align them with [:, None]",
        "dot-shape": "tl.dot of {left} and {right} is not possible; {what}",
        "branch-type": "{name} has type {left} in one branch and {right} in the other; make them equal",
        "loop-type": "{name} is {left} before the loop and {right} after one pass; keep its type and shape",
        "tensor-condition": "a block cannot be a condition; use tl.where",
        "constant-of-tensor": "{name}() takes compile-time values, not a tensor; {instead}",
        "loop-bounds": "the bounds of a loop must be scalar integers, not {what}; convert with .to(tl.int32)",
        "static-loop": "tl.static_range takes compile-time bounds; use range for a run-time one",
    }
)
"""Every lint: its id and its message. Ids are stable: stores of rules may name them."""


def finding(rule: str, line: int, **facts: object) -> Finding:
    """A finding with its lint's message."""
    return Finding(rule, line, LINTS[rule].format(**facts))
