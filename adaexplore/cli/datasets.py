"""``adaexplore datasets``: list, download and check public benchmarks."""

import argparse
import logging
from collections.abc import Mapping
from pathlib import Path

from adaexplore.cli.output import columns, show
from adaexplore.core.errors import UsageError
from adaexplore.report.text import text_table
from adaexplore.settings.paths import datasets_folder
from adaexplore.tasks.datasets import Dataset, check, present, read_catalogue
from adaexplore.tasks.download import install

logger = logging.getLogger(__name__)

WRONG = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument("what", choices=("list", "download", "check"), help="what to do")
    what.metavar = "list|download|check"
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="names of data sets (default for list and check: all)"
    )
    parser.add_argument(
        "--from",
        type=Path,
        dest="checkout",
        metavar="PATH",
        help="download: copy from this checkout instead of the network",
    )
    parser.add_argument(
        "--part",
        action="append",
        metavar="PART",
        help="download: only this part, such as level1 (repeatable)",
    )
    parser.add_argument(
        "--into", type=Path, metavar="DIR", help="folder of all data sets (default: datasets)"
    )
    parser.add_argument(
        "--catalogue", type=Path, metavar="FILE", help="list of data sets (default: config/datasets.yaml)"
    )


def run(args: argparse.Namespace) -> int:
    """List, download or check; return 1 if a check finds a missing or changed part."""
    catalogue = read_catalogue(args.catalogue)
    chosen = catalogue.chosen(args.names)
    into = args.into or datasets_folder()
    if args.what != "download" and (args.checkout or args.part):
        raise UsageError("--from and --part belong to datasets download")
    if args.what == "list":
        _list(chosen, into, str(catalogue.checked))
        return 0
    if args.what == "check":
        return _check(chosen, into, named=bool(args.names))
    if not args.names:
        raise UsageError(f"name the data set to download: {', '.join(catalogue.datasets)}")
    if args.checkout is not None and len(args.names) > 1:
        raise UsageError("--from takes one data set at a time")
    for name, dataset in chosen.items():
        _download(name, dataset, into, args.part, args.checkout)
    return 0


def _list(chosen: Mapping[str, Dataset], into: Path, day: str) -> None:
    rows = []
    for name, dataset in chosen.items():
        there = present(dataset, into / dataset.folder)
        state = f"{sum(there.values())} of {len(there)}"
        pin = "verified" if dataset.verified else "not verified"
        rows.append([name, state, dataset.revision[:12], pin, dataset.licence, dataset.title])
    print(text_table(["name", "parts here", "revision", "pin", "licence", "what"], rows, columns()))  # noqa: T201
    show(f"\nFolder: {into}; pins of {day}.")
    for name, dataset in chosen.items():
        show(f"{name}: {dataset.citation} {dataset.repository}")
        if dataset.note:
            show(f"  {dataset.note}")


def _download(
    name: str, dataset: Dataset, into: Path, parts: list[str] | None, checkout: Path | None
) -> None:
    for part in parts or ():
        if part not in dataset.parts:
            raise UsageError(f"{name} has no part {part!r}; it has {', '.join(dataset.parts)}")
    wanted = parts or list(dataset.parts)
    new = install(name, dataset, wanted, into, checkout)
    there = present(dataset, into / dataset.folder)
    show(f"{name}: {', '.join(new) or 'nothing'} new in {into / dataset.folder}, revision {dataset.revision}")
    show(f"Licence: {dataset.licence}. Cite: {dataset.citation} {dataset.repository}")
    if dataset.note:
        show(f"Note: {dataset.note}")
    if None in (dataset.parts[part] for part in new):
        logger.warning(
            "%s: no checksum is known for this revision; the downloaded files are not verified", name
        )
    absent = [part for part in wanted if not there[part]]
    if absent:
        logger.warning("%s: %s holds no %s", name, checkout, ", ".join(absent))


def _check(chosen: Mapping[str, Dataset], into: Path, *, named: bool) -> int:
    """Compare the downloaded files with the pins; without names, check all downloaded data sets."""
    rows = []
    for name, dataset in chosen.items():
        folder = into / dataset.folder
        if named or any(present(dataset, folder).values()):
            rows += [[name, part, state] for part, state in check(dataset, folder)]
    if not rows:
        show(f"No data set is in {into}; run adaexplore datasets download NAME.")
        return 0
    print(text_table(["name", "part", "state"], rows, columns()))  # noqa: T201
    return WRONG if any(state in ("missing", "differs") for _, _, state in rows) else 0
