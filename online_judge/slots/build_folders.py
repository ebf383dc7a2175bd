"""Folders that requests name for building CUDA extensions: below ``BUILD_DIR``, without symbolic links."""

import contextlib
import logging
import os

log = logging.getLogger(__name__)


def refusal(wanted: str | None, root: str | None) -> str | None:
    """Return in one line why ``wanted`` is refused; None if it is accepted. ``root`` is ``BUILD_DIR``."""
    if not wanted:
        return None
    if root is None:
        return "this judge has no BUILD_DIR: leave build_dir out, or start the judge with BUILD_DIR"
    try:
        below = _parts_below(wanted, root)
    except (OSError, ValueError):
        below = None
    return None if below is not None else f"build_dir must be a folder below the judge's BUILD_DIR, {root}"


def made(wanted: str | None, root: str | None) -> str | None:
    """Create ``wanted``, or ``root`` if that is empty, and return its real path.

    None if neither is given or the folder cannot be made: then a private one is used.
    """
    if root is None:
        return None
    try:
        real_root = os.path.realpath(root)
        parts = _parts_below(wanted or root, root)
        if parts is None:
            raise ValueError("it is not below BUILD_DIR")
        os.makedirs(real_root, exist_ok=True)
        folder = os.open(real_root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:  # candidates can write there, so one may just have put a link there
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
                inner = os.open(
                    part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
                )
                os.close(folder)
                folder = inner
        finally:
            os.close(folder)
    except (OSError, ValueError) as error:
        log.warning("the build folder %r cannot be made: %s", wanted or root, error)
        return None
    return os.path.join(real_root, *parts)


def _parts_below(wanted: str, root: str) -> list[str] | None:
    """Return the names from ``root`` to ``wanted``, links resolved; None if it is not below."""
    relative = os.path.relpath(os.path.realpath(wanted), os.path.realpath(root))
    parts = [] if relative == "." else relative.split("/")
    return None if ".." in parts[:1] else parts
