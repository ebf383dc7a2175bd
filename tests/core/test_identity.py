from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.text.identity import MOST_PARSED_CHARS, source_identity

SOURCE = '''
def f(x):
    """Doc."""
    return x * 2
'''


def test_comments_formatting_and_docstrings_do_not_count() -> None:
    assert source_identity(SOURCE) == source_identity("def f( x ):  # twice\n\n    return x*2\n")


def test_numbers_and_names_count() -> None:
    assert source_identity(SOURCE) != source_identity(SOURCE.replace("2", "3"))
    assert source_identity(SOURCE) != source_identity(SOURCE.replace("x", "y"))


def test_unparsable_sources_are_compared_by_their_lines() -> None:
    assert source_identity("def f(:  \n") == source_identity("def f(:")
    assert source_identity("def f(:") != source_identity("def g(:")


def test_very_long_sources_are_not_parsed() -> None:
    long = "x = 1\n" * (MOST_PARSED_CHARS // 6 + 1)
    assert source_identity(long) == source_identity(long)
    assert source_identity(long) != source_identity(f"{long}# a comment\n")


@given(st.text())
def test_any_text_has_an_identity(text: str) -> None:
    assert source_identity(text) == source_identity(text)


@pytest.mark.parametrize(
    "code",
    [
        "print(__doc__)",
        "print(open(__file__).read())",
        "open('candidate.py')",
        "import inspect\ninspect.getsource(f)",
        "import linecache",
        "import traceback",
        "import sys\nsys._getframe().f_lineno",
        "import warnings",
        "from torch.utils import _traceback",
        "from torch import *",
        "f.__code__.co_firstlineno",
        "__loader__.get_data('x')",
        "getattr(f, '__doc__')",
        "getattr(f, '__do' + 'c__')",
        "'{0.__doc__}'.format(f)",
        "kernel.src",
        "torch.load('candidate.py')",
        "import numpy as np\nnp.fromfile('candidate.py')",
        "exec('1')",
        "globals()['x']",
        "try:\n    f()\nexcept Exception as error:\n    print(str(error))",
    ],
)
def test_program_that_reads_its_text_is_its_text(code: str) -> None:
    assert source_identity(f"{code}\n") != source_identity(f"# comment\n{code}\n")


@pytest.mark.parametrize("cookie", ["latin-1", "utf-7", "rot13", "unicode_escape"])
def test_program_in_another_encoding_is_its_text(cookie: str) -> None:
    source = f"# coding: {cookie}\nx = 'é'\n"
    assert len({source_identity(text) for text in (source, "x = 'é'\n", f"\n{source}", f"{source}#")}) == 4


def test_utf8_cookie_does_not_count() -> None:
    assert source_identity("# -*- coding: UTF-8 -*-\nx = 1\n") == source_identity("x = 1\n")


def test_ordinary_kernels_are_compared_as_programs() -> None:
    source = (
        '"""How to open the file and inspect the traceback."""\n'
        "import math, os, sys\nimport torch\nimport triton\nimport triton.language as tl\n"
        "@triton.jit\ndef kernel(p):\n    tl.store(p, tl.load(p) + triton.language.load(p))\n"
        "class ModelNew(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.linear = torch.nn.Linear(3, 3).eval()\n        self.size = getattr(self, 'size', 3)\n"
    )
    assert source_identity(source) == source_identity(source.replace("import math", "# math\n\nimport math"))
