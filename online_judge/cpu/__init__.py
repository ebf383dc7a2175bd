"""Run Triton candidates written for CUDA on a machine without a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager

from online_judge.cpu import tensors, torch_cuda
from online_judge.cpu.compile_gate import CompileGate
from online_judge.cpu.dataless import DatalessDevices, DatalessTensors
from online_judge.cpu.errors import IllegalAccessError, NotCheckedError
from online_judge.cpu.launching import Launcher
from online_judge.cpu.patching import Patches
from online_judge.cpu.target import gpu_model

__all__ = ["IllegalAccessError", "NotCheckedError", "simulated_cuda"]


@contextmanager
def simulated_cuda(
    compile_target: str, *, executes: bool = True, gate: CompileGate | None = None
) -> Iterator[DatalessTensors | None]:
    """Run a block as if there were one GPU of the target's architecture (``"sm_90"``).

    Inside the block tensors report ``cuda:0``, ``torch.cuda`` answers for a plausible GPU, and every launch
    of a ``@triton.jit`` kernel is compiled by Triton's front end for the target and executed by Triton's
    interpreter on CPU memory. Without ``executes`` it is only compiled: tensors have no data and may be of
    any size, and the block gets an object that tracks their known values. A given ``gate``, of the same
    target, compiles the launches. The block applies to the thread that entered it; torch and Triton must have
    been imported without ``TRITON_INTERPRET``.
    """
    model = gpu_model(compile_target)
    with Patches() as patches:
        torch_cuda.install(patches, model)
        tensors.install_properties(patches)
        if executes:
            Launcher(model).install(patches)
            with tensors.SimulatedDevices():
                yield None
        else:
            dataless = DatalessTensors()
            dataless.install(patches)
            Launcher(model, dataless, gate).install(patches)
            with dataless, DatalessDevices():
                yield dataless
