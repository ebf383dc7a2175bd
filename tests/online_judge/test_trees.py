from __future__ import annotations

import gc
import weakref

import torch

from online_judge.evaluation import trees


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
