from __future__ import annotations

import gc
import weakref

import torch

from online_judge.common import trees


def test_taking_apart_keeps_no_tensor_alive() -> None:
    """Large tensors must go when their last user is done, not when the garbage collector comes by."""
    gc.disable()
    try:
        tensor = torch.zeros(3)
        gone = weakref.ref(tensor)
        tree = trees.take_apart({"a": [tensor, 1]})
        assert gone() is not None
        del tensor, tree
        assert gone() is None
    finally:
        gc.enable()


def test_order_of_a_dict_does_not_matter() -> None:
    one, two = torch.ones(1), torch.ones(2)
    first, second = trees.take_apart({"a": one, "b": two}), trees.take_apart({"b": two, "a": one})
    assert first.signature() == second.signature()
    assert [len(leaf) for leaf in first.leaves] == [len(leaf) for leaf in second.leaves] == [1, 2]
    assert list(trees.put_together(second.shape, second.leaves)) == ["b", "a"]
