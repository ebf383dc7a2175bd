"""Facts about the judge's software, GPUs and measurements, collected once at its start."""

import dataclasses
import importlib.metadata
import importlib.util
import inspect
import pkgutil
import platform
import re
from typing import get_args

import numpy
import torch
import triton
import triton.language as tl
import triton.language.extra
from triton.backends.nvidia.compiler import CUDAOptions

from adaexplore.core.environment import (
    CheckRules,
    DeviceFacts,
    Flags,
    SoftwareFacts,
    TimingRules,
    TritonFacts,
)
from adaexplore.core.wire import Tf32Policy
from online_judge.common import gpu_peaks, modules
from online_judge.evaluator.correctness import tiers
from online_judge.evaluator.evaluation import GRADED_TRIALS
from online_judge.evaluator.timing.interleaved import MIN_SAMPLES
from online_judge.evaluator.timing.setup import WARMUP_S
from online_judge.sandbox import process_spec

_DESCRIPTORS = ("triton.language.make_tensor_descriptor", "triton.tools.tensor_descriptor.TensorDescriptor")
# Names of Triton 2.1 to 3.2 that many published kernels use.
_FORMER = (
    "triton.language.libdevice",
    "triton.language.math.tanh",
    "triton.language.math.pow",
    "triton.language.math.isnan",
    "triton.language.math.isinf",
    "triton.language.math.round",
    "triton.language.math.log1p",
    "triton.language.math.expm1",
    "triton.language._experimental_descriptor_load",
    "triton.language._experimental_descriptor_store",
    "triton.ops",
)
_OTHER_VENDORS = ".hip"


def _versions() -> dict[str, str]:
    found = {
        "torch": str(torch.__version__),
        "triton": str(triton.__version__),
        "numpy": str(numpy.__version__),
        "python": platform.python_version(),
    }
    return found if torch.version.cuda is None else found | {"cuda": str(torch.version.cuda)}


def stated() -> SoftwareFacts:
    """Return the facts about the judge's software for clients."""
    policies: tuple[Tf32Policy, ...] = get_args(Tf32Policy)
    return SoftwareFacts(
        versions=_versions(),
        packages=sorted(name for name in importlib.metadata.packages_distributions() if name.isidentifier()),
        triton=triton_facts(),
        precision=tiers.stated(GRADED_TRIALS),
        checks=CheckRules(
            gradients=False,
            mode="constructed",
            flags={
                policy: Flags(allow_tf32=modules.allows_tf32(policy), dot=process_spec.dot_precision(policy))
                for policy in policies
            },
            inputs="get_inputs",
            output_strides="any",
            failed_combinations="skipped",
        ),
        timing=TimingRules(statistic="median", warmup_s=WARMUP_S, least_calls=MIN_SAMPLES, cold_l2=True),
    )


def device_facts(properties: object) -> DeviceFacts:
    """Describe the GPU with these ``torch.cuda.get_device_properties``; missing ones stay absent."""

    def value(name: str) -> int | None:
        return int(getattr(properties, name, 0) or 0) or None

    name = str(getattr(properties, "name", ""))
    peak = gpu_peaks.peak(name, properties)
    return DeviceFacts(
        name=name,
        capability=f"{value('major') or 0}.{value('minor') or 0}",
        multiprocessors=value("multi_processor_count"),
        shared_bytes_per_block=value("shared_memory_per_block_optin"),
        registers_per_multiprocessor=value("regs_per_multiprocessor"),
        threads_per_multiprocessor=value("max_threads_per_multi_processor"),
        l2_bytes=value("L2_cache_size"),
        memory_bytes=value("total_memory"),
        bytes_per_s=None if peak is None else peak.bytes_per_s,
        flops={} if peak is None else {str(kind): rate for kind, rate in peak.flops.items()},
    )


def triton_facts() -> TritonFacts:
    parameters = inspect.signature(tl.range.__init__).parameters
    note = re.search(r"[^.]*\bonly supported\b[^.]*\.", inspect.getdoc(tl.range) or "")
    return TritonFacts(
        names={name: _public(name) for name in ("triton.language", "triton.language.math", *_extra())},
        gone=[name for name in _FORMER if not _exists(name)],
        parameters=_parameters(),
        launch_options=[each.name for each in dataclasses.fields(CUDAOptions)],
        range_options=[name for name in parameters if name not in ("self", "arg1", "arg2", "step")],
        range_note="" if note is None else " ".join(note[0].split()),
        descriptors=[name for name in _DESCRIPTORS if _exists(name)],
    )


def _extra() -> list[str]:
    package = triton.language.extra
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return sorted(each.name for each in found if _OTHER_VENDORS not in each.name)


def _public(module: str) -> list[str]:
    """Return a module's public names except submodules, whose import varies; [] if it is not a module."""
    try:
        held = vars(importlib.import_module(module))
    except ImportError:
        return []
    return sorted(name for name in held if not name.startswith("_") and not inspect.ismodule(held[name]))


def _parameters() -> dict[str, str]:
    """Return the parameters of the language's functions, except those that the compiler fills in."""
    found = {}
    for name in _public("triton.language"):
        function = getattr(tl, name)
        function = function.fn if isinstance(function, triton.JITFunction) else function
        if inspect.isfunction(function):
            parameters = [
                each.replace(
                    annotation=each.empty, default=each.empty if each.default is each.empty else None
                )
                for each in inspect.signature(function).parameters.values()
                if not each.name.startswith("_")
            ]
            found[name] = str(inspect.Signature(parameters))[1:-1]
    return found


def _exists(path: str) -> bool:
    module, _, name = path.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.util.find_spec(path))
    except ImportError:
        return False
