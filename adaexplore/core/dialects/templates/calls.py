# Calls a function of this file as a test of the benchmark does.
import torch
import triton.language


class Model(torch.nn.Module):
    """Calls ``function`` of this file with ``args`` and ``kwargs``.

    After a dot is a method of a class; ``launch`` launches a kernel on the grid that ``args`` begin with.
    ``written`` are the numbers of the tensors among these that the function writes to, which are outputs
    too. ``wanted`` are the numbers of those whose gradients are outputs, given ``upstream``, the gradients of
    the tensors that it returns.
    """

    def forward(self, function, args, kwargs, written, wanted, upstream):
        given = _tb_tensors([args, kwargs])
        given = [t.detach().requires_grad_() if i in wanted else t for i, t in enumerate(given)]
        left = iter(given)
        args, kwargs = _tb_unpacked(_tb_mapped([args, kwargs], lambda _: next(left)))
        name, _, method = function.partition(".")
        target = _TB_NAMES[name]
        if method == "launch":
            grid, *args = args
            target = target[tuple(grid)]
        elif method:
            target = getattr(target, method)
        gradients = ()
        with torch.set_grad_enabled(bool(wanted)):
            result = target(*args, **kwargs)
            if method == "launch":
                result = None  # what Triton returns differs from launch to launch
            if wanted:
                made = [t for t in _tb_tensors(result) if t.requires_grad]
                sources = [given[i] for i in wanted]
                gradients = torch.autograd.grad(made, sources, upstream, allow_unused=True)
        device = given[0].device if given else None
        return _tb_plain([result, [given[i] for i in written], gradients], device)


def _tb_tensors(value):
    found = []
    _tb_mapped(value, found.append)
    return found


def _tb_mapped(value, change):
    """Return ``value`` with its tensors changed; those of a dict in the order of its keys' names."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _tb_mapped(value[key], change) for key in sorted(value, key=str)}
    if isinstance(value, tuple):
        return tuple(_tb_mapped(item, change) for item in value)
    return [_tb_mapped(item, change) for item in value] if isinstance(value, list) else value


def _tb_plain(value, device):
    """Return ``value`` in terms that can be compared within a tolerance: numbers become tensors."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {str(key): _tb_plain(item, device) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tb_plain(item, device) for item in value]
    if isinstance(value, (bool, int, float, complex)) or type(value).__module__ == "numpy":
        return torch.as_tensor(value, device=device)
    if isinstance(value, (torch.dtype, torch.device)):
        return str(value)
    # the text of another object may hold its address
    return value if value is None or isinstance(value, str) else type(value).__name__


def _tb_unpacked(value):
    """Return ``value`` with the objects that are neither tensors nor plain values; see ``_tb_packed``."""
    if isinstance(value, tuple):
        return tuple(map(_tb_unpacked, value))
    if isinstance(value, list):
        return [_tb_unpacked(item) for item in value]
    if not isinstance(value, dict):
        return value
    parts = {key: _tb_unpacked(item) for key, item in value.items()}
    if "torch name" in parts:
        return getattr(torch, parts["torch name"])
    if "triton name" in parts:
        return getattr(triton.language, parts["triton name"])
    if "class name" in parts:
        return _TB_NAMES[parts["class name"]](*parts["args"], **parts["kwargs"])
    return parts
