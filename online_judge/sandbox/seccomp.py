"""A system-call filter for the candidate's process and all its children.

It refuses calls that reach deep into the operating system and that Triton and PyTorch never make: keyrings,
io_uring, BPF, tracing, other processes' memory, namespaces, mounts, unusual sockets. All other calls stay
allowed, so that CUDA, compilers, threads and forks work as before.

Packages on PyPI need the system's ``libseccomp.so`` (pyseccomp) or start a command (sandlock). Without
``SPEC_ALLOW`` some kernels also switch off speculative stores, and a candidate's host code would run slower
than the reference's.
"""

import ctypes
import errno
import socket
import struct
from typing import Final

from online_judge.sandbox import linux

_SET_MODE_FILTER: Final = 1
_SPEC_ALLOW: Final = 4

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # offsets; of arguments the lower half counts
_ERROR: Final = 0x00050000
_X32: Final = 0x40000000  # bit of a second table of calls on x86-64

_AUDIT: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# name: number on x86-64, number on aarch64
_REFUSED: Final = {
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": linux.KEYCTL,
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
}
_SECCOMP, _CLONE, _UNSHARE, _SOCKET = (317, 277), (56, 220), (272, 97), (41, 198)
_CLONE3: Final = 435  # its flags are in memory, which a filter cannot read

_NEW_CGROUP, _NEW_TIME = 0x02000000, 0x80
_NAMESPACES: Final = (
    linux.NEW_MOUNTS
    | linux.NEW_HOSTNAME
    | linux.NEW_IPC
    | linux.NEW_USER
    | linux.NEW_PIDS
    | linux.NEW_NETWORK
    | _NEW_CGROUP
)
_KIND_MASK: Final = 0xF  # the other bits of a socket's type are flags

Instruction = tuple[int, int, int, int]
"""Operation, steps to skip if true, steps to skip if false, operand."""
_ALLOW: Final[Instruction] = (_RETURN, 0, 0, 0x7FFF0000)


def install() -> None:
    """Filter the calls of this thread and of all its forks, for good.

    Needs :func:`online_judge.sandbox.linux.drop_privileges` first. Raises OSError if the kernel takes no
    filter or the architecture is unknown.
    """
    code = b"".join(struct.pack("HBBI", *step) for step in program(linux.machine()))
    held = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("HP", len(code) // 8, ctypes.addressof(held))
    linux.call("syscall", linux.number(_SECCOMP), _SET_MODE_FILTER, _SPEC_ALLOW, described)


def program(machine: str) -> list[Instruction]:
    """Return the filter for an architecture, ``x86_64`` or ``aarch64``."""
    column = linux.MACHINES.index(machine)
    refused = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _AUDIT[machine]),
        _error(errno.EPERM),  # calls of a 32-bit program
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        refused += [(_AT_LEAST, 0, 1, _X32), _error(errno.ENOSYS)]
    for numbers in _REFUSED.values():
        refused += _where(numbers[column], [_error(errno.EPERM)])
    refused += _where(_CLONE3, [_error(errno.ENOSYS)])  # libc falls back to clone
    refused += _where(_CLONE[column], _without_bits(_NAMESPACES))
    refused += _where(_UNSHARE[column], _without_bits(_NAMESPACES | _NEW_TIME))
    refused += _where(_SOCKET[column], _sockets())
    return [*refused, _ALLOW]


def _error(code: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | code)


def _where(value: int, steps: list[Instruction]) -> list[Instruction]:
    return [(_EQUAL, 0, len(steps), value), *steps]


def _without_bits(bits: int) -> list[Instruction]:
    return [(_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, bits), _error(errno.EPERM), _ALLOW]


def _sockets() -> list[Instruction]:
    """Allow local and netlink sockets, and TCP and UDP; nothing raw, no packets, no vsock."""
    return [
        (_LOAD, 0, 0, _FIRST),
        *_where(socket.AF_UNIX, [_ALLOW]),
        *_where(socket.AF_NETLINK, [_ALLOW]),
        (_EQUAL, 2, 0, socket.AF_INET),
        (_EQUAL, 1, 0, socket.AF_INET6),
        _error(errno.EPERM),
        (_LOAD, 0, 0, _SECOND),
        (_AND, 0, 0, _KIND_MASK),
        *_where(socket.SOCK_STREAM, [_ALLOW]),
        *_where(socket.SOCK_DGRAM, [_ALLOW]),
        _error(errno.EPERM),
    ]
