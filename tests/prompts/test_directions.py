from __future__ import annotations

import pytest

from adaexplore.core.directions import FREE
from adaexplore.prompts.directions import direction_text, offered_directions

SUM = "class Model:\n    def forward(self, x):\n        return x.sum(dim=1)\n"
LINEAR = "class Model:\n    def __init__(self):\n        self.layer = nn.Linear(4, 4)\n"
PLAIN = "class Model:\n    def forward(self, x):\n        return x * 2\n"


@pytest.mark.parametrize(
    ("reference", "there", "absent"),
    [
        (LINEAR, {"library_product", "own_product", "split_reduction"}, {"one_pass"}),
        ("x = a @ b", {"library_product", "own_product"}, {"one_pass"}),
        (SUM, {"split_reduction", "one_pass"}, {"library_product", "own_product"}),
        (PLAIN, {"one_kernel", "algebra"}, {"library_product", "one_pass", "split_reduction"}),
    ],
)
def test_a_task_offers_what_its_module_needs(reference: str, there: set[str], absent: set[str]) -> None:
    large = set(offered_directions(reference).large)
    assert there <= large
    assert not absent & large


def test_eight_steps_beside_each_other_never_repeat_one() -> None:
    offered = offered_directions(PLAIN)
    assert min(len(offered.large), len(offered.small)) >= 7


def test_each_direction_is_one_line_of_its_own() -> None:
    offered = offered_directions(LINEAR)
    texts = [direction_text(name) for name in (*offered.large, *offered.small, *offered.repair)]
    assert len(set(texts)) == len(texts)
    assert all(text.startswith("\n") and text.count("\n") == 1 and text.endswith(".") for text in texts)


@pytest.mark.parametrize("name", [FREE, "of another version"])
def test_an_unknown_direction_says_nothing(name: str) -> None:
    assert direction_text(name) == ""
