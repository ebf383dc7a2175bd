"""What is known of a launch and of the code around it, and what is not sure."""

from __future__ import annotations

import pytest

from adaexplore.core.environment import TritonFacts
from tests.preflight.cases import module, rules

KEEP = "def keep(configs, named_args, **kwargs):\n    return configs[:1]\n"
PRUNED = 'prune_configs_by={"early_config_prune": keep}, '
TWO = "x_ptr, y_ptr, n, BLOCK: tl.constexpr, S: tl.constexpr"


def tuned(configs: str, *, pruned: bool) -> dict[str, str]:
    decorator = f'@triton.autotune(configs={configs}, {PRUNED if pruned else ""}key=["n"])'
    return {"above": KEEP, "decorators": decorator}


@pytest.mark.parametrize("pruned", [False, True])
def test_configuration_that_may_be_pruned_is_left_alone(pruned: bool, api: TritonFacts) -> None:
    one_has_it = '[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 64, "S": 1})]'
    launch = "kernel[(8,)](x, y, 512, S=1)"
    given_twice = module(parameters=TWO, launch=launch, **tuned(one_has_it, pruned=pruned))
    odd = '[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 64}, num_warps=3)]'
    odd_warps = module(launch="kernel[(8,)](x, y, 512)", **tuned(odd, pruned=pruned))
    assert rules(given_twice, api) == (set() if pruned else {"launch-tuned-argument"})
    assert rules(odd_warps, api) == (set() if pruned else {"num-warps"})


def test_what_heuristics_fill_in_is_not_missing(api: TritonFacts) -> None:
    launch = "kernel[(8,)](x, y, 512)"
    filled = '@triton.heuristics({"BLOCK": lambda args: 64})'
    assert rules(module(decorators=filled, launch=launch), api) == set()
    assert rules(module(launch=launch), api) == {"launch-missing-argument"}


@pytest.mark.parametrize(
    ("launch", "found"),
    [
        ("given = (x, y, 512)\nkernel[(8,)](*given, BLOCK=64)", set()),
        ('given = {"BLOCK": 64}\nkernel[(8,)](x, y, 512, **given)', set()),
        ("kernel[(8,)](x, y, 512, 64, 5)", {"call-arguments"}),
        ("kernel[(8,)](x, y, 512, BLOCK=64)\nz = other(x, y)", {"call-arguments"}),
        ("kernel[(8,)](x, y, 512, BLOCK=64)\nother = torch.add\nz = other(x, y)", set()),
        ('kernel[(8,)](x, y, 512, BLOCK=64)\ngiven = {"scale": 2}\nz = keyed(x, **given)', set()),
        ("kernel[(8,)](x, y, 512, BLOCK=64)\nz = wrapped(x, y)", set()),
        ("kernel[(8,)](x, y, 512, BLOCK=64)\nz = other(x, x=y)", {"call-arguments"}),
        ("kernel[(8,)](x, y, 512, BLOCK=64)\nz = keyed(x)", {"call-arguments"}),
        ("kernel[(8,)](x, y, 512, BLOCK=64)\nz = keyed(x, scale=2)", set()),
        ('kernel[(8,)](x, y, 512, BLOCK=64)\nsetattr(self, "a" + "b", 1)\nz = self.ab', set()),
        ("kernel[(8,)](x, y, 512, BLOCK=64)\nz = self.ab", {"undefined-attribute"}),
    ],
)
def test_only_what_is_sure_to_fail_is_found(launch: str, found: set[str], api: TritonFacts) -> None:
    above = """
        def other(x):
            return x * 2

        def keyed(x, *, scale):
            return x * scale

        def widened(function):
            return lambda x, y: function(x)

        @widened
        def wrapped(x):
            return x * 2
    """
    assert rules(module(above=above, launch=launch), api) == found


def test_a_model_may_come_from_a_star_import(api: TritonFacts) -> None:
    assert rules("from elsewhere import *\n", api) == set()
    assert rules("import elsewhere\n", api) == {"no-model"}
