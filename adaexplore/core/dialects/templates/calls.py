# Calls a function of this file as a test of the benchmark does.
import torch
import triton.language


class Model(torch.nn.Module):
    """Calls ``function`` of this file with ``args`` and ``kwargs``.

    After a dot is a method of a class; ``launch`` launches a kernel on the grid that ``args`` begin with.
    ``written`` are the numbers of the tensors among these that the function writes to, which are outputs
    too. ``wanted`` are the numbers of those whose gradients are outputs, given ``upstream``, the gradients of
    the tensors that it returns; then those of modules' parameters are outputs too. Its result is an output if
    ``returns``.
    """

    def forward(self, function, args, kwargs, written, wanted, upstream, returns):
        name, _, method = function.partition(".")
        target = _TB_NAMES[name]
        gradients = []
        with torch.set_grad_enabled(bool(upstream)):
            sources = _tb_tensors([args, kwargs])
            sources = [t.detach().requires_grad_() if i in wanted else t for i, t in enumerate(sources)]
            # PyTorch refuses to write to what needs a gradient, but not to its copy
            given = [t.clone() if i in wanted and i in written else t for i, t in enumerate(sources)]
            left = iter(given)
            args, kwargs = _tb_unpacked(_tb_mapped([args, kwargs], lambda _: next(left)), given)
            objects = [*args, *kwargs.values()]
            if method == "launch":
                grid, *args = args
                target = target[tuple(grid)]
            elif method:
                target = getattr(target, method)
            result = target(*args, **kwargs)
            if not returns:
                result = None
            if upstream:
                made = [t for t in _tb_tensors(result) if t.requires_grad]
                parameters = _tb_parameters(objects)
                sources = [*(sources[i] for i in wanted), *parameters.values()]
                found = torch.autograd.grad(made, sources, upstream, materialize_grads=True)
                gradients = [*found[: len(wanted)]]
                if parameters:
                    gradients.append(dict(zip(parameters, found[len(wanted) :], strict=True)))
        device = given[0].device if given else None
        return _tb_plain([result, [given[i] for i in written], gradients], device)


def _tb_parameters(objects):
    """Return by name the parameters of the modules among ``objects`` that need gradients."""
    modules = torch.nn.ModuleList(each for each in objects if isinstance(each, torch.nn.Module))
    return {name: each for name, each in modules.named_parameters() if each.requires_grad}


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
    if value is None or isinstance(value, str):
        return value
    return type(value).__name__.removeprefix("_tb_own_")


def _tb_unpacked(value, given):
    """Return ``value`` with the objects that are neither tensors nor plain values; see ``_tb_packed``."""
    if isinstance(value, tuple):
        return tuple(_tb_unpacked(item, given) for item in value)
    if isinstance(value, list):
        return [_tb_unpacked(item, given) for item in value]
    if not isinstance(value, dict):
        return value
    parts = {key: _tb_unpacked(item, given) for key, item in value.items()}
    if "same tensor" in parts:
        return given[parts["same tensor"]]
    if "torch size" in parts:
        return torch.Size(parts["torch size"])
    if "torch name" in parts:
        return getattr(torch, parts["torch name"])
    if "triton name" in parts:
        return getattr(triton.language, parts["triton name"])
    if "class name" in parts:
        return _TB_NAMES[parts["class name"]](*parts["args"], **parts["kwargs"])
    return parts
