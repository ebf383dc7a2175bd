"""Writes the table of a Triton version that the lints fall back on where that Triton is not installed.

``python -m tool_scripts.build_triton_table FOLDER`` with the folder of ``triton/__init__.py``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from adaexplore.preflight import triton_api

TABLES = Path(triton_api.__file__).parent / "tables"


def main(argv: list[str] | None = None) -> int:
    """Write ``<major>.<minor>.json`` beside the lints; exit code 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the package's folder, with its __init__.py")
    parser.add_argument("--out", type=Path, default=TABLES, help="folder of the tables")
    arguments = parser.parse_args(argv)
    api = triton_api.read_api(arguments.folder)
    path = arguments.out / f"{'.'.join(api.version.split('.')[:2])}.json"
    path.write_text(triton_api.to_json(api), encoding="utf-8")
    sys.stdout.write(f"{path}: Triton {api.version}, {path.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
