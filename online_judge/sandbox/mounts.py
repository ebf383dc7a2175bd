"""A process's own file system: what it needs, read-only, and a writable folder of limited size."""

import contextlib
import ctypes
import functools
import glob
import os
import re
import shutil
import socket
import struct
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from online_judge.sandbox import linux

REPOSITORY = str(Path(__file__).resolve().parents[2])
TEMPORARY, SHARED_MEMORY = "/tmp", "/dev/shm"
SMALL_BYTES = 2**28
_MAX_FILES = 200_000

_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_DETACH = 2
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_NO_SYMLINKS = 4
_CLONE, _RECURSIVE, _EMPTY_PATH, _FROM_DESCRIPTOR = 1, 0x8000, 0x1000, 4
_ATTRIBUTE_RDONLY, _ATTRIBUTE_IDMAP = 1, 0x00100000

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/sys")
_LINKER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
_SETTINGS = (*_LINKER, "/etc/localtime", "/etc/nsswitch.conf", "/etc/nvidia")
_NODES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_KEY_LISTS = ("/proc/keys", "/proc/key-users")
_GPU_NODES = "/dev/nvidia*"
_LINKS = {"/dev/fd": "", "/dev/stdin": "/0", "/dev/stdout": "/1", "/dev/stderr": "/2"}  # in /proc/self/fd
_ESCAPED = re.compile(r"\\(0[0-7]{2}|1[0-7]{2})")
_COMPILERS = ("gcc", "cc", "clang", "g++")
_TOOLS = ("TRITON_PTXAS_PATH", "TRITON_LIBCUDA_PATH", "CC", "CXX")
PATH_VARIABLES = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", *_TOOLS)
"""Environment variables of paths that the judge's processes get and may read."""


@dataclass(frozen=True)
class FileView:
    """The part of the file system that a process sees."""

    folder: str  # its own, empty folder, under the same path as outside
    visible: tuple[str, ...]  # other readable paths, where the system has them
    hidden: tuple[str, ...]  # hidden paths below visible ones
    devices: tuple[str, ...]  # device nodes
    writable: tuple[str, ...] = ()  # further writable folders of the machine


def view(folder: str, *, cuda: bool, build_dir: str | None = None) -> FileView:
    """Show the system, this Python and its packages; nothing of this repository.

    ``build_dir`` is a real path: a symbolic link in it is an error when it is mounted.
    """
    home = str(Path(folder).parent)
    secret = (home,) if is_installed() else (home, REPOSITORY)
    python = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    paths = [*python, *sys.path]
    for name in PATH_VARIABLES:
        paths += os.environ.get(name, "").split(os.pathsep)
    paths += _toolchains()
    wanted = [os.path.abspath(path) for path in paths if os.path.isabs(path)]
    visible = [path for path in wanted if not any(is_within(inner, path) for inner in (*secret, REPOSITORY))]
    if is_installed():
        visible.append(sysconfig.get_path("purelib"))
    writable = []
    if build_dir and not any(is_within(inner, build_dir) for inner in (*secret, *python, *_SYSTEM)):
        writable = [build_dir]
    gpus = sorted(glob.glob(_GPU_NODES)) if cuda else []
    shown = (*_SYSTEM, *_SETTINGS, *dict.fromkeys(visible))
    return FileView(folder, shown, secret, (*_NODES, *gpus), tuple(writable))


def _toolchains() -> list[str]:
    """Return folders of compilers, such as /opt/gcc for /opt/gcc/bin/gcc, which Triton calls by name."""
    named = [os.environ.get("CC"), os.environ.get("CXX"), *_COMPILERS]
    found = [shutil.which(name) for name in named if name]
    folders = [Path(each).parent for path in found if path for each in (path, os.path.realpath(path))]
    return [str(folder.parent) for folder in folders if folder.name == "bin" and len(folder.parts) > 2]


@functools.cache
def is_installed() -> bool:
    """Return True if this code is installed among other packages, so that its folder cannot be hidden."""
    return os.path.realpath(sysconfig.get_path("purelib")) == REPOSITORY


def move_in(view: FileView, uid: int, gid: int, disk_bytes: int) -> None:
    """Make ``view`` this process's whole file system; it has a mount namespace of its own already.

    Copies the files in its folder. Until the last step the old file system stays in place, so an OSError
    leaves it unchanged.
    """
    _mount("", "/", "", _REC | _PRIVATE)
    own = Path(view.folder).iterdir()
    files = {file.name: file.read_bytes() for file in own if file.is_file() and not file.is_symlink()}
    guests = {}  # detached mounts of the folders that the process may write
    for path in view.writable:
        with contextlib.suppress(OSError):
            guests[path] = _borrow(path, uid, gid)
    root = view.folder
    _mount_memory(root, "size=4m,nr_inodes=8192,mode=755")
    try:
        _build(view, root, uid, gid, disk_bytes, guests)
        os.chdir(root)
        linux.call("pivot_root", b".", b".")
    except OSError:
        linux.call("umount2", os.fsencode(root), _DETACH)
        raise
    finally:
        for fd in guests.values():
            os.close(fd)
    linux.call("umount2", b".", _DETACH)
    os.chdir(view.folder)
    for name, content in files.items():
        Path(name).write_bytes(content)
        os.chown(name, uid, gid)


def _build(view: FileView, root: str, uid: int, gid: int, disk_bytes: int, guests: Mapping[str, int]) -> None:
    tree = _Tree(root)
    order = [(path, tree.hide) for path in view.hidden] + [(path, tree.show) for path in view.visible]
    for path, place in sorted(order, key=lambda entry: len(Path(entry[0]).parts)):
        place(path)
    for path in view.devices:
        tree.show(path)
    for link, target in _LINKS.items():
        os.symlink(f"/proc/self/fd{target}", root + link)
    for path in (view.folder, TEMPORARY, SHARED_MEMORY, "/proc", *guests):
        tree.make(path)
    people = f"root:x:0:0::/:/bin/sh\ncandidate:x:{uid}:{gid}::{view.folder}:/bin/sh\n"
    Path(root + "/etc/passwd").write_bytes(people.encode())
    Path(root + "/etc/group").write_bytes(f"root:x:0:\ncandidate:x:{gid}:\n".encode())
    _set_attributes(-100, os.fsencode(root), _RECURSIVE, _ATTRIBUTE_RDONLY)
    try:
        _mount("proc", root + "/proc", "proc", _NOSUID | _NODEV | _NOEXEC, "hidepid=2")
    except OSError:  # a container that masks parts of its own /proc
        _mount("/proc", root + "/proc", "", _BIND | _REC)
    for name in _KEY_LISTS:
        with contextlib.suppress(OSError):  # a kernel without keyrings, or a container that masks them
            _mount("/dev/null", root + name, "", _BIND)
    owner = f"nr_inodes={_MAX_FILES},mode=700,uid={uid},gid={gid}"
    for path in (TEMPORARY, SHARED_MEMORY):
        _mount_memory(root + path, f"size={SMALL_BYTES},{owner}")
    _show_again(view, root)
    os.makedirs(root + view.folder, exist_ok=True)
    _mount_memory(root + view.folder, f"size={disk_bytes},{owner}")
    for path, fd in guests.items():
        os.makedirs(root + path, exist_ok=True)
        linux.call("syscall", _MOVE_MOUNT, fd, b"", -100, os.fsencode(root + path), _FROM_DESCRIPTOR)


def _show_again(view: FileView, root: str) -> None:
    """Show visible paths that lie below one of the process's own folders, such as a Python under /tmp."""
    tree = _Tree(root)
    for path in filter(_is_own, view.visible):
        tree.show(path)
    for path in filter(_is_own, tree.shown):  # elsewhere, a link led there: it is shown already
        _set_attributes(-100, os.fsencode(root + path), _RECURSIVE, _ATTRIBUTE_RDONLY)
        above = Path(path).parent
        while str(above) not in (TEMPORARY, SHARED_MEMORY, "/"):
            os.chmod(root + str(above), 0o555)
            above = above.parent


def _is_own(path: str) -> bool:
    return is_within(path, TEMPORARY) or is_within(path, SHARED_MEMORY)


class _Tree:
    """A new root directory, in which parts of the old one appear at the same paths."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.shown: list[str] = []
        self._hidden: list[str] = []

    def make(self, path: str) -> None:
        if not self._is_shown(path):
            os.makedirs(self._root + path, exist_ok=True)

    def hide(self, path: str) -> None:
        """Mount an empty directory over it if something above it is visible."""
        if self._is_shown(path) and os.path.isdir(path):
            _mount_memory(self._root + path, "size=1m,nr_inodes=1024,mode=755")
            self._hidden.append(path)

    def show(self, path: str) -> None:
        """Bind it, with the symbolic links that lead there, if it exists."""
        if not os.path.exists(path):
            return
        done, rest = "/", [part for part in reversed(path.split("/")) if part]
        while rest:
            part = rest.pop()
            if part == "..":
                done = os.path.dirname(done)
                continue
            here = os.path.join(done, part)
            if not os.path.islink(here):
                done = here
                continue
            target = os.readlink(here)
            if not self._is_shown(here) and not os.path.lexists(self._root + here):
                os.makedirs(os.path.dirname(self._root + here), exist_ok=True)
                os.symlink(target, self._root + here)
            done = "/" if os.path.isabs(target) else done
            rest += [part for part in reversed(target.split("/")) if part not in ("", ".")]
        if not self._is_shown(done):
            self._bind(done)

    def _bind(self, path: str) -> None:
        place = self._root + path
        if os.path.isdir(path):
            os.makedirs(place, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        try:
            _mount(path, place, "", _BIND | (0 if path == "/sys" else _REC))
        except OSError:  # in a user namespace, mounts below it cannot be left out
            _mount(path, place, "", _BIND | _REC)
        self.shown.append(path)

    def _is_shown(self, path: str) -> bool:
        shown = max((len(outer) for outer in self.shown if is_within(path, outer)), default=-1)
        return shown > max((len(outer) for outer in self._hidden if is_within(path, outer)), default=-1)


def _borrow(path: str, uid: int, gid: int) -> int:
    """Return a detached mount of ``path`` in which its owner's files belong to ``uid``.

    Other candidates may write in the same folder: a symbolic link on the way is an error.
    """
    how = struct.pack("QQQ", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _NO_SYMLINKS)
    folder = linux.call("syscall", _OPENAT2, -100, os.fsencode(path), how, ctypes.c_size_t(len(how)))
    try:
        fd = linux.call("syscall", _OPEN_TREE, folder, b"", _CLONE | _EMPTY_PATH | os.O_CLOEXEC)
        owner = os.fstat(folder)
    finally:
        os.close(folder)
    if owner.st_uid == uid:
        return fd
    try:
        users = _user_namespace(f"{owner.st_uid} {uid} 1", f"{owner.st_gid} {gid} 1")
        try:
            _set_attributes(fd, b"", _EMPTY_PATH, _ATTRIBUTE_IDMAP, users)
        finally:
            os.close(users)
    except OSError:
        os.close(fd)
        raise
    return fd


def _user_namespace(uid_map: str, gid_map: str) -> int:
    """Return a descriptor of a new user namespace with these maps."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        try:
            linux.unshare(linux.NEW_USER)
            theirs.send(os.readlink("/proc/self").encode())  # its number in the old /proc
            theirs.recv(1)
        finally:
            os._exit(0)
    theirs.close()
    try:
        folder = Path("/proc", ours.recv(32).decode())
        (folder / "uid_map").write_bytes(uid_map.encode())
        (folder / "gid_map").write_bytes(gid_map.encode())
        return os.open(folder / "ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        ours.close()
        os.waitpid(child, 0)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    places = os.fsencode(source), os.fsencode(target)
    linux.call("mount", *places, kind.encode(), ctypes.c_ulong(flags), options.encode())


def _mount_memory(target: str, options: str) -> None:
    _mount("candidate", target, "tmpfs", _NOSUID | _NODEV, options)


def _set_attributes(fd: int, path: bytes, flags: int, attributes: int, users: int = 0) -> None:
    packed = struct.pack("QQQQ", attributes, 0, 0, users)
    linux.call("syscall", _MOUNT_SETATTR, fd, path, flags, packed, ctypes.c_size_t(len(packed)))


@dataclass(frozen=True)
class Mount:
    root: str  # mounted part of its file system
    place: str  # where
    options: frozenset[str]  # of the mount
    kind: str  # of the file system
    file_system_options: frozenset[str]  # of the file system


def table(pid: int | str = "self") -> list[Mount]:
    """Return the mounts of a process in the order of ``/proc/PID/mountinfo``.

    Names may hold any character: the kernel escapes blanks and newlines, and nothing else separates.
    """
    found = []
    for line in os.fsdecode(Path(f"/proc/{pid}/mountinfo").read_bytes()).split("\n"):
        own, _, rest = line.partition(" - ")
        fields, kind = own.split(" "), rest.split(" ")
        if len(fields) > 5:
            root, place, options = _unescaped(fields[3]), _unescaped(fields[4]), fields[5].split(",")
            found.append(Mount(root, place, frozenset(options), kind[0], frozenset(kind[-1].split(","))))
    return found


def _unescaped(name: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), name)


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
