"""Child program: does a candidate pass a plain comparison with its reference at 5e-2?

Both are constructed under one seed, the candidate gets the reference's weights where they fit, and five
seeded inputs are compared. This is what "honest" means in the benchmark, on purpose without the judge's code.
"""

from __future__ import annotations

import sys

from tool_scripts.judge_bench import loading


def main() -> int:
    """Compare and write the result down."""
    import torch

    device = loading.asked_device()
    loading.switch_tf32_off()
    try:
        reference, candidate = loading.load("reference"), loading.load("candidate")
        loading.seed_everything(loading.SEED)
        init_inputs = list(reference.get_init_inputs())
        want_model = loading.construct(reference, "Model", init_inputs, device)
        got_model = loading.construct(candidate, "ModelNew", init_inputs, device)
        weights = want_model.state_dict()
        own = got_model.state_dict()
        if own.keys() == weights.keys() and all(own[name].shape == weights[name].shape for name in weights):
            got_model.load_state_dict(weights)
        detail = ""
        with torch.no_grad():
            for trial in range(loading.TRIALS):
                values = loading.inputs(reference, loading.SEED + trial, device)
                loading.seed_everything(trial)
                want = want_model(*[each.clone() if torch.is_tensor(each) else each for each in values])
                loading.seed_everything(trial)
                got = got_model(*values)
                detail = detail or loading.difference(got, want)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what the candidate raises is its outcome
        loading.write_result({"outcome": "error", "detail": f"{type(error).__name__}: {error}"[:300]})
        return 0
    loading.write_result({"outcome": "wrong" if detail else "passed", "detail": detail})
    return 0


if __name__ == "__main__":
    sys.exit(main())
