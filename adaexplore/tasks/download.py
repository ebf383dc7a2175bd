"""Download a benchmark from its public address, or copy it from a checkout.

Each part is moved into place as a whole, so a killed process leaves no partial parts. Partial downloads
stay in ``.downloads`` beside the data sets, and the next call continues them.
"""

import gzip
import os
import shutil
import tarfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from adaexplore.core.errors import StorageError, UsageError
from adaexplore.core.files.atomic import locked
from adaexplore.tasks.datasets import Dataset, check, checksum

_TIMEOUT_S = 60.0


def install(
    name: str, dataset: Dataset, parts: Collection[str], into: Path, checkout: Path | None = None
) -> list[str]:
    """Install the ``parts`` of a data set into its folder below ``into``; return the new ones.

    With a ``checkout``, its parts are copied from there instead of the network.

    Raises:
        UsageError: the checkout, or a part in the folder, differs from the pinned revision.
        StorageError: the address cannot be reached, or a file cannot be written.
    """
    target = into / dataset.folder
    work = into / ".downloads" / f"{name}-{dataset.revision[:12]}"
    busy = f"another process is installing {name} into {into}; wait for it"
    with locked(into / ".downloads" / f"{name}.lock", "name another folder with --into", busy):
        there = dict(check(dataset, target))
        for part in parts:
            if there[part] == "differs":
                raise UsageError(
                    f"{dataset.place(target) / part} differs from the pinned revision {dataset.revision}; "
                    "move it away and try again"
                )
        wanted = [part for part in parts if there[part] == "missing"]
        if not wanted:
            return []
        try:
            return _bring(dataset, wanted, target, work, checkout)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise StorageError(_by_hand(name, dataset, error)) from error
        except OSError as error:
            path, why = error.filename or into, error.strerror or error
            if isinstance(error, shutil.Error):  # of many files
                _, path, why = error.args[0][0]
            what = f"cannot write {path}: {why}"
            raise StorageError(f"{what}; free space or name another folder with --into") from error


def _bring(
    dataset: Dataset, wanted: Collection[str], target: Path, work: Path, checkout: Path | None
) -> list[str]:
    tree = work / ("tree" if checkout is None else "copied")
    if checkout is not None:
        wanted = _copied(dataset, wanted, checkout, tree)
    else:
        with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True) as client:
            if dataset.archive is None:
                _fetch_from_hub(client, dataset, wanted, tree)
            else:
                _fetch(client, dataset.archive, work / "archive.tar")
                _unpack(dataset, wanted, work / "archive.tar", tree)
    for part in wanted:
        pinned = dataset.parts[part]
        if not (tree / part).exists():
            raise StorageError(f"{dataset.repository} at {dataset.revision} holds no {part}")
        if pinned is not None and checksum(tree / part) != pinned:
            shutil.rmtree(work)
            where = checkout or dataset.archive or dataset.hub
            raise UsageError(
                f"{part} of {where} is not revision {dataset.revision}: its checksum is not {pinned}; "
                "check out that revision, or try again"
            )
    place = dataset.place(target)
    for part in wanted:
        (place / part).parent.mkdir(parents=True, exist_ok=True)
        os.rename(tree / part, place / part)
    shutil.rmtree(work)
    return list(wanted)


def _copied(dataset: Dataset, wanted: Collection[str], checkout: Path, tree: Path) -> list[str]:
    source = dataset.place(checkout)
    found = [part for part in wanted if (source / part).exists()]
    if not found:
        names = ", ".join(wanted)
        raise UsageError(f"{checkout} holds none of {names}; name a checkout of {dataset.repository}")
    shutil.rmtree(tree, ignore_errors=True)
    for part in found:
        _refuse_unreadable(source / part)
        (tree / part).parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source / part, tree / part, symlinks=True, ignore=ignored)
        else:
            shutil.copyfile(source / part, tree / part)
    return found


def _refuse_unreadable(part: Path) -> None:
    for path in (part, *sorted(part.rglob("*"))):
        if not os.access(path, os.R_OK):
            why = "its target is missing" if os.path.islink(path) else "permission denied"
        elif not path.is_file() and not path.is_dir():
            why = "it is no plain file"
        else:
            continue
        raise UsageError(f"cannot read {path}: {why}; name a complete checkout")


def _fetch(client: httpx.Client, url: str, path: Path) -> None:
    """Download ``url`` to ``path`` unless it exists; continue a partial download."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.with_name(f"{path.name}.part")
    size = begun.stat().st_size if begun.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={size}-"} if size else {})
    with client.stream("GET", url, headers=headers) as answer:
        if answer.status_code != httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:  # else the file is complete
            answer.raise_for_status()
            goes_on = answer.status_code == httpx.codes.PARTIAL_CONTENT
            with begun.open("ab" if goes_on else "wb") as out:
                for block in answer.iter_raw():
                    out.write(block)
    os.replace(begun, path)


def _unpack(dataset: Dataset, wanted: Collection[str], archive: Path, tree: Path) -> None:
    """Unpack the parts from an archive whose files are all below one folder."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    root = PurePosixPath(dataset.root)

    def write(packed: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        below = PurePosixPath(*PurePosixPath(member.name).parts[1:])
        content = packed.extractfile(member) if member.isreg() and below.is_relative_to(root) else None
        if content is None or not any(below.relative_to(root).is_relative_to(part) for part in wanted):
            return
        if ".." in below.parts:
            raise tarfile.TarError(f"{member.name!r} would be outside of the folder")
        path = tree / below.relative_to(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            shutil.copyfileobj(content, out)

    try:
        with tarfile.open(archive) as packed:  # without its filters, which Python has from 3.11.4 on
            for member in packed:
                write(packed, member)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        archive.unlink()
        raise StorageError(f"{dataset.archive} is not a complete tar archive ({error}); try again") from error


def _fetch_from_hub(client: httpx.Client, dataset: Dataset, wanted: Collection[str], tree: Path) -> None:
    """Download the parts of a data set on a hub, file by file."""
    hub = urlsplit(dataset.hub or "")
    revision = quote(dataset.revision, safe="")
    for part in wanted:
        path = f"{dataset.root}/{part}".strip("/")
        listing = f"{hub.scheme}://{hub.netloc}/api{hub.path}/tree/{revision}/{quote(path)}?recursive=true"
        for entry in _pages(client, listing):
            below = PurePosixPath(entry.path)
            if not below.is_relative_to(path) or ".." in below.parts:
                raise StorageError(f"{listing} names {entry.path!r}, which is not below {path}")
            if entry.type == "file":
                url = f"{dataset.hub}/resolve/{revision}/{quote(entry.path)}"
                _fetch(client, url, tree / below.relative_to(dataset.root))


class _Entry(BaseModel):
    type: str
    path: str


def _pages(client: httpx.Client, url: str) -> Iterator[_Entry]:
    """Yield the entries of a listing, page after page."""
    following: str | None = url
    while following is not None:
        answer = client.get(following).raise_for_status()
        try:
            yield from TypeAdapter(list[_Entry]).validate_json(answer.content)
        except ValidationError as error:
            raise StorageError(f"{following} did not answer with a listing; try again") from error
        following = answer.links.get("next", {}).get("url")


def _by_hand(name: str, dataset: Dataset, error: Exception) -> str:
    """Describe the download by hand, for a machine without network."""
    folder = dataset.repository.rstrip("/").rpartition("/")[2]
    clone = "git clone" if dataset.hub is None else "git lfs install && git clone"
    why = " ".join(str(error).split()) or type(error).__name__
    return (
        f"cannot download {name} from {dataset.archive or dataset.hub}: {why}; try again, or on a machine "
        f"with network: {clone} {dataset.repository} && git -C {folder} checkout {dataset.revision}; copy "
        f"that folder here, then: adaexplore datasets download {name} --from {folder}"
    )
