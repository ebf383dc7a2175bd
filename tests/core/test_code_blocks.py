import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.core.text.code_blocks import extract_code

KERNEL = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


@pytest.mark.parametrize(
    "language", ["", "python", "py", "Python", "cpp", "c++", "triton", " python", "python "]
)
def test_first_block_is_returned_without_its_language(language):
    assert extract_code(f"Here it is:\n```{language}\n{KERNEL}```\nGood luck!") == KERNEL


def test_language_and_code_may_share_one_line():
    assert extract_code("```python import torch\nx = 1```") == "import torch\nx = 1"


def test_code_on_the_opening_fence_line_is_kept():
    assert extract_code("```import torch\nx = 1\n```") == "import torch\nx = 1\n"


def test_windows_line_ends():
    assert (
        extract_code("```python\r\nclass ModelNew:\r\n    pass\r\n```\r\n")
        == "class ModelNew:\r\n    pass\r\n"
    )


def test_unclosed_fence_takes_the_rest():
    assert extract_code(f"```python\n{KERNEL}") == KERNEL


def test_longer_fences_hold_shorter_ones():
    body = f'"""Use:\n```\nx\n```\n"""\n{KERNEL}'
    assert extract_code(f"````python\n{body}````") == body


def test_an_indented_block_loses_its_indentation():
    reply = "1. Do this:\n   ```python\n   class ModelNew:\n       pass\n   ```\n"
    assert extract_code(reply) == "class ModelNew:\n    pass\n"


def test_first_of_several_model_blocks_is_taken():
    assert extract_code(f"```\n{KERNEL}```\nor\n```\n{KERNEL}x = 1\n```") == KERNEL


def test_block_with_the_model_is_preferred():
    assert extract_code(f"```bash\npip install triton\n```\n```python\n{KERNEL}```") == KERNEL


def test_without_any_model_the_first_block_is_taken():
    assert extract_code("```\nx = 1\n```\n```\ny = 2\n```") == "x = 1\n"


def test_model_only_mentioned_in_a_comment_is_ignored():
    reply = f"```\n# the class ModelNew follows\n```\n```\n{KERNEL}```"
    assert extract_code(reply) == KERNEL


def test_fences_in_a_docstring_end_no_block():
    source = (
        f'{KERNEL}    """Use:\n    ```python\n    y = model(x)\n    ```\n    or ```ModelNew```.\n    """\n'
    )
    assert extract_code(f"Here:\n```python\n{source}```\nDone.") == source


@pytest.mark.parametrize(
    "prose", ["Use a single ``` fence:", "```tl.load``` reads a block:", "No ```\tcode."]
)
def test_backticks_in_prose_open_no_block(prose):
    assert extract_code(f"{prose}\n```python\n{KERNEL}```\n") == KERNEL


@pytest.mark.parametrize("text", ["Here it is: ", "**Answer:**", "<code>"])
def test_a_block_may_open_after_text(text):
    assert extract_code(f"{text}```python\n{KERNEL}```\n") == KERNEL


def test_block_in_a_list_item_loses_indentation():
    reply = "- ```python\n  import torch\n  ```\n- ```python\n  class ModelNew:\n      pass\n  ```\n"
    assert extract_code(reply) == "class ModelNew:\n    pass\n"


def test_a_fence_after_code_ends_the_block():
    assert extract_code("```python\nx = 1```\nThen:\n```python\ny = 2\n```\n") == "x = 1"
    assert extract_code("```python\nx = 1``` is all.") == "x = 1"


@pytest.mark.parametrize("reply", ["", "  \n", "```python\n```", "```\n\n  \n```", "```python", "```"])
def test_replies_without_code_give_none(reply):
    assert extract_code(reply) is None


def test_unfenced_reply_with_the_model_is_code():
    assert extract_code(KERNEL) == KERNEL
    assert extract_code(f"Sure, here it is:\n{KERNEL}") == f"Sure, here it is:\n{KERNEL}"


def test_unfenced_python_with_a_class_is_code():
    assert extract_code("class Net:\n    pass\n") == "class Net:\n    pass\n"
    assert extract_code("x = 1\n") is None


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot do that.",
        "Use a class for it, class by class.",
        "class\x00",
        "(" * 5000,
        "-" * 100_000 + "1",
    ],
)
def test_prose_is_no_code(reply):
    assert extract_code(reply) is None


@pytest.mark.parametrize(
    "piece", ["```", "``` ", "```python\n", "`" * 50, "class ModelNew\n", " " * 99 + "\n"]
)
def test_a_megabyte_is_read_in_linear_time(piece):
    started = time.process_time()
    extract_code(piece * (1_000_000 // len(piece)))
    assert time.process_time() - started < 5


CODE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="`"), max_size=60)


@settings(deadline=None)
@given(CODE, CODE, CODE)
def test_code_comes_back_as_it_was_written(before, code, after):
    source = f"class ModelNew:\n{code}\n"
    assert extract_code(f"{before}\n```python\n{source}```\n{after}") == source


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["```", "````", "`", "\n", " ", "a", "class ModelNew:", "python"]), max_size=30)
)
def test_any_reply_is_read(pieces):
    code = extract_code("".join(pieces))
    assert code is None or code.strip()
