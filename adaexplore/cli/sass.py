"""Turn PTX into SASS, the GPU's machine code, with the tools of CUDA or Triton."""

import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from adaexplore.core.errors import UsageError

_LIMIT_S = 300
_BLACKWELL = 100


def sass(ptx: str) -> str:
    """Assemble and disassemble ``ptx`` for the architecture that it names.

    Raises:
        UsageError: the tools are missing or reject it.
    """
    target = re.search(r"^\.target (sm_(\d+)\w*)", ptx, re.MULTILINE)
    if target is None:
        raise UsageError("the judge's PTX names no .target; take --asm ptx")
    with tempfile.TemporaryDirectory(prefix="adaexplore-sass-") as folder:
        source, binary = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        assembler = _tool("ptxas-blackwell" if int(target[2]) >= _BLACKWELL else "ptxas")
        _output(assembler, f"-arch={target[1]}", str(source), "-o", str(binary))
        return _output(_tool("cuobjdump"), "-sass", str(binary))


def _tool(name: str) -> str:
    """Return the path of a tool: Triton's, since it fits Triton's PTX, else the one on the PATH."""
    triton = importlib.util.find_spec("triton")
    for folder in (triton and triton.submodule_search_locations) or ():
        path = Path(folder, "backends/nvidia/bin", name)
        if path.is_file():
            return str(path)
    found = shutil.which(name) or shutil.which(name.partition("-")[0])
    if found is None:
        raise UsageError(f"--asm sass needs {name}: install triton or CUDA, or take --asm ptx")
    return found


def _output(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LIMIT_S, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{command[0]} cannot be used: {error}; take --asm ptx") from error
    if done.returncode:
        raise UsageError(f"{command[0]} failed: {' '.join(done.stderr.split())[:300]}; take --asm ptx")
    return done.stdout
