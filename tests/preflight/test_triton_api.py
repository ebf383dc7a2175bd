from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.preflight.triton_api import TritonApi, read_api, to_json, triton_api
from tool_scripts import build_triton_table

_TABLES = build_triton_table.TABLES


def installed() -> Path:
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        pytest.skip("no Triton here")
    return Path(spec.origin).parent


def known(version: str) -> TritonApi:
    found = triton_api(version)
    assert found is not None
    return found


@pytest.mark.parametrize("version", ["3.6.0", "3.7.1"])
def test_a_known_version_needs_no_installation(version: str) -> None:
    api = known(version)
    assert api.version == version
    assert not api.lacks("triton.language.load")
    assert api.lacks("triton.language.tanh")
    assert not api.lacks("triton.language.extra.libdevice.tanh")
    assert not api.lacks("triton.language.extra.cuda.libdevice.tanh")
    assert not api.lacks("triton.language.some_module.anything")  # only what is known can lack something
    assert api.signatures["load"].names[:3] == ("pointer", "mask", "other")
    assert "other" not in api.signatures["store"].names
    assert api.dtypes["exp"] == ("fp32", "fp64")
    assert {"sum", "to", "shape"} <= api.tensor
    assert "astype" not in api.tensor
    assert "Break" not in api.nodes
    assert {"If", "For", "While"} <= api.nodes
    assert "num_warps" in api.options
    assert {"range", "min", "max"} <= api.builtins


def test_versions_differ_where_triton_does() -> None:
    assert known("3.6.0").lacks("triton.language.squeeze")
    assert not known("3.7.1").lacks("triton.language.squeeze")


def test_an_unknown_version_has_no_table() -> None:
    assert triton_api("2.0.0") is None


def test_a_table_is_what_the_source_says(tmp_path: Path) -> None:
    folder = installed()
    api = read_api(folder)
    table = _TABLES / f"{'.'.join(api.version.split('.')[:2])}.json"
    if not table.exists():
        pytest.skip(f"no table of Triton {api.version}")
    assert to_json(api) == table.read_text(encoding="utf-8")
    assert build_triton_table.main([str(folder), "--out", str(tmp_path)]) == 0
    assert (tmp_path / table.name).read_bytes() == table.read_bytes()


def test_reading_does_not_import_triton() -> None:
    code = (
        "import sys\n"
        "from adaexplore.preflight.lints import lint\n"
        "from adaexplore.preflight.triton_api import triton_api\n"
        "lint('import triton\\nclass ModelNew: ...', triton_api())\n"
        "assert not {'triton', 'torch'} & set(sys.modules), 'imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
