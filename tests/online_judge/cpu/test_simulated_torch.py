"""What torch says and does while a GPU is simulated."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.checkpoint import checkpoint

from online_judge.cpu import NotCheckedError, simulated_cuda


class Doubled(torch.autograd.Function):
    """Allocates the gradient as a Triton kernel's wrapper does."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: object, upstream: torch.Tensor) -> torch.Tensor:
        return torch.empty(upstream.shape, device=upstream.device).copy_(upstream * 2)


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * torch.full(x.shape, 2.0, device=x.device)


def gradient(call: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    parameter = nn.Parameter(x)
    call(parameter).sum().backward()
    assert parameter.grad is not None
    assert bool((parameter.grad == 2).all())
    return parameter.grad


PLACED_ON_CUDA: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros": lambda x: torch.zeros(3, device="cuda:0"),
    "full on the device of another": lambda x: torch.full((2,), 1.0, device=x.device),
    "arange": lambda x: torch.arange(4, device=torch.device("cuda")),
    "tensor by index": lambda x: torch.tensor([1.0], device=0),
    "rand with generator": lambda x: torch.rand(
        3, generator=torch.Generator(device="cuda").manual_seed(3), device="cuda"
    ),
    "as_tensor": lambda x: torch.as_tensor([1, 2], device="cuda"),
    "new_empty": lambda x: x.new_empty(3, device="cuda"),
    "empty_like": lambda x: torch.empty_like(x),
    "to a name": lambda x: x.to("cuda:0", torch.float16),
    "to by keyword": lambda x: x.to(device="cuda", dtype=torch.float64, non_blocking=True),
    "to an index": lambda x: x.to(0),
    "to another tensor": lambda x: torch.zeros(2).to(x),
    "cuda": lambda x: torch.tensor(2.0).cuda(non_blocking=True),
    "pinned": lambda x: torch.zeros(3, pin_memory=True).pin_memory().cuda(),
    "linear": lambda x: nn.Linear(4, 4, device="cuda")(x),
    "module.cuda": lambda x: nn.Linear(4, 4).cuda().weight,
    "module.to": lambda x: nn.Linear(4, 4).to(torch.device("cuda:0"), torch.float16).weight,
    "back from the host": lambda x: x.cpu().cuda(),
    "module back from the host": lambda x: nn.Linear(4, 4).cpu().cuda().weight,
    "deep copy": lambda x: copy.deepcopy(nn.Linear(2, 2)).weight,
    "gradient": lambda x: torch.autograd.grad((p := nn.Parameter(x)).sum(), p)[0],
    "gradient by a function of its own": lambda x: gradient(Doubled.apply, x),
    "gradient of a checkpoint": lambda x: gradient(lambda p: checkpoint(doubled, p, use_reentrant=False), x),
    "bag of embeddings": lambda x: F.embedding_bag(torch.zeros(2, 3, dtype=torch.int64, device="cuda"), x),
    "random pooling": lambda x: F.fractional_max_pool2d(x.view(1, 1, 4, 4), 2, output_size=2),
    "attention": lambda x: nn.MultiheadAttention(4, 1, add_zero_attn=True).cuda()(x, x, x)[0],
    "packed sequence": lambda x: nn.GRU(4, 4).cuda()(pack_padded_sequence(x[:, None], torch.tensor([4])))[1],
    "as torch's compiler allocates": lambda x: torch._C._dynamo.guards._empty_strided_cuda(
        (2, 3), (3, 1), torch.float32
    ),
}

PLACED_ON_HOST = {
    "cpu": lambda x: x.cpu(),
    "to cpu": lambda x: x.to("cpu"),
    "computed from host tensors": lambda x: x.cpu().view(-1) + 1,
    "factory": lambda x: torch.zeros(3, device="cpu"),
    "module": lambda x: nn.Linear(3, 3).cpu().weight,
}


@pytest.mark.parametrize("case", PLACED_ON_CUDA)
def test_tensor_is_a_cuda_tensor(gpu: None, case: str) -> None:
    tensor = PLACED_ON_CUDA[case](torch.randn(4, 4, device="cuda"))
    assert tensor.is_cuda
    assert not tensor.is_cpu
    assert tensor.device == torch.device("cuda", 0)
    assert tensor.get_device() == 0


@pytest.mark.parametrize("case", PLACED_ON_HOST)
def test_tensor_placed_on_host_is_not_cuda(gpu: None, case: str) -> None:
    tensor = PLACED_ON_HOST[case](torch.randn(4, 4, device="cuda"))
    assert not tensor.is_cuda
    assert tensor.device == torch.device("cpu")
    assert tensor.get_device() == -1


def test_host_copy_does_not_share_memory(gpu: None) -> None:
    x = torch.zeros(2, device="cuda")
    x.cpu().add_(1)
    assert x.sum().item() == 0


def test_default_device_may_be_cuda(gpu: None) -> None:
    with torch.device("cuda"):
        inside = nn.Linear(2, 2).weight
    torch.set_default_device("cuda")
    default = torch.zeros(2)
    torch.set_default_device(None)
    assert inside.is_cuda
    assert default.is_cuda


def test_gpu_queries_describe_the_target() -> None:
    with simulated_cuda("sm_80"):
        properties = torch.cuda.get_device_properties(0)
        assert torch.cuda.is_available()
        assert (torch.cuda.device_count(), torch.cuda.current_device()) == (1, 0)
        assert torch.cuda.get_device_capability() == (8, 0) == (properties.major, properties.minor)
        assert properties.multi_processor_count == 108
        assert "A100" in torch.cuda.get_device_name()
        assert torch.cuda.mem_get_info()[0] > torch.cuda.memory_allocated() == 0


def test_streams_events_and_device_contexts_do_nothing_harmful(gpu: None) -> None:
    x = torch.zeros(2, device="cuda")
    stream, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event()
    with torch.cuda.device(x.device), torch.cuda.stream(stream), torch.cuda._DeviceGuard(0):
        start.record()
        x.record_stream(stream)
        end.record(stream)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0


def test_autocast_on_cuda_casts_matrix_products(gpu: None) -> None:
    x = torch.randn(4, 4, device="cuda")
    with torch.autocast("cuda"):
        assert (x @ x).dtype == torch.float16
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
        assert F.linear(x, x).dtype == torch.bfloat16


def test_backend_flags_can_be_set(gpu: None) -> None:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.benchmark
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.benchmark = before


def test_tensors_survive_pickling_saving_and_printing(gpu: None) -> None:
    x = torch.randn(3, device="cuda")
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cuda")["x"], x)
    assert torch.equal(pickle.loads(pickle.dumps(x)), x)
    assert "cuda:0" in repr(x)
    assert x.cpu().numpy().shape == (3,)


@pytest.mark.parametrize("use", [lambda: torch.compile(F.relu), lambda: torch.cuda.CUDAGraph()])
def test_gpu_only_features_are_not_checked(gpu: None, use: object) -> None:
    with pytest.raises(NotCheckedError, match="GPU"):
        use()  # type: ignore[operator]


def _made_before_a_crash() -> torch.Tensor:
    with contextlib.suppress(KeyError), simulated_cuda("sm_90"):
        x = torch.zeros(2, device="cuda")
        raise KeyError
    return x


def test_everything_is_put_back() -> None:
    before = {**vars(torch.cuda)}, {**vars(torch.Tensor)}, torch.Generator, torch.compile, torch.load
    x = _made_before_a_crash()
    assert (
        {**vars(torch.cuda)},
        {**vars(torch.Tensor)},
        torch.Generator,
        torch.compile,
        torch.load,
    ) == before
    assert x.device == torch.device("cpu")
    assert not torch.zeros(2).is_cuda


@pytest.mark.parametrize("target", ["gfx942", "90", "sm90", "sm_9x"])
def test_malformed_target_error_names_expected_form(target: str) -> None:
    with pytest.raises(ValueError, match="sm_XX"), simulated_cuda(target):
        pass
