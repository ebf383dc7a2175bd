"""Problems with several input sets: how they are read, and what a judge without a GPU says of them."""

import json
import types
from typing import Any

import pytest
import torch

from adaexplore.core.text.dispatch import with_dispatch
from adaexplore.core.wire import EvaluationRequest
from online_judge.common.workloads import description, input_sets
from online_judge.evaluator.reference import Reference, ReferenceFailed, Seeds
from online_judge.queue.cache import Question

from .live import LiveJudge
from .sources import HONEST, PASSING, REFERENCE, with_forward
from .test_v2_jobs import judged

WORKLOADS = """
def get_workloads():
    return [
        {"name": "square", "get_inputs": lambda: [torch.randn(16, 16)]},
        {"name": "wide", "get_inputs": lambda: [torch.randn(4, 16)], "weight": 3},
        {"name": "one row", "get_inputs": lambda: [torch.randn(1, 16)]},
    ]
"""
PROBLEM = REFERENCE.replace("def get_inputs():\n    return [torch.randn(8, 16)]\n", WORKLOADS)
HIDDEN = """
def get_workloads():
    return [{"name": "secret", "get_inputs": lambda: [torch.randn(37, 16)]}]
"""
SQUARE_ONLY = with_forward("return torch.relu(self.linear(x)) if x.shape[0] == 16 else x")
NOT_THIRTY_SEVEN = with_forward(
    "print('rows', x.shape[0])\nreturn torch.relu(self.linear(x)) if x.shape[0] != 37 else x"
)


def module(source: str) -> types.ModuleType:
    made = types.ModuleType("problem")
    exec("import torch\n" + source, made.__dict__)
    return made


def entries(value: str) -> types.ModuleType:
    return module(f"def get_workloads():\n    return {value}\n")


class TestReading:
    def test_file_without_workloads_has_its_get_inputs(self) -> None:
        (only,) = input_sets(module("def get_inputs():\n    return [3]\n"))
        assert (only.weight, only.hidden, only.draw()) == (1.0, False, [3])

    def test_hidden_workloads_come_last_and_see_problem_names(self) -> None:
        problem = module("ROWS = 5\n" + WORKLOADS)
        hidden = "def get_workloads():\n    return [{'name': 'h', 'get_inputs': lambda: [ROWS]}]\n"
        found = input_sets(problem, hidden)
        assert [each.name for each in found] == ["square", "wide", "one row", "h"]
        assert [each.weight for each in found] == [1.0, 3.0, 1.0, 1.0]
        assert [each.hidden for each in found] == [False, False, False, True]
        assert found[3].draw() == [5]
        assert len(input_sets(problem)) == 3

    @pytest.mark.parametrize(
        ("value", "why"),
        [
            ("[]", "must return a list of at least one dict"),
            ("{}", "must return a list of at least one dict"),
            ("[3]", r"\[0\] is no dict"),
            ("[{'get_inputs': list}]", r"\[0\] needs a 'name'"),
            ("[{'name': 'a\\nb', 'get_inputs': list}]", r"\[0\] needs a 'name'"),
            ("[{'name': 'a'}]", r"\[0\] needs 'get_inputs'"),
            ("[{'name': 'a', 'get_inputs': list, 'weight': 0}]", "no positive number"),
            ("[{'name': 'a', 'get_inputs': list, 'weight': float('nan')}]", "no positive number"),
            ("[{'name': 'a', 'get_inputs': list, 'wieght': 2}]", "unknown key 'wieght'"),
            ("[{'name': 'a', 'get_inputs': list}] * 2", "two workloads have the name 'a'"),
            ("[{'name': str(i), 'get_inputs': list} for i in range(129)]", "at most 128"),
        ],
    )
    def test_wrong_entry_is_named(self, value: str, why: str) -> None:
        with pytest.raises(ValueError, match=why):
            input_sets(entries(value))

    def test_hidden_source_must_define_its_workloads(self) -> None:
        with pytest.raises(ValueError, match="defines no get_workloads"):
            input_sets(module(WORKLOADS), "x = 1")

    def test_description_names_dtypes_shapes_and_values(self) -> None:
        inputs = [torch.zeros(2, 3), 5, [torch.zeros(1, dtype=torch.int64)], None]
        assert description(inputs) == "float32[2, 3], 5, (int64[1]), None"


class TestReference:
    def test_it_draws_the_inputs_of_its_workload(self) -> None:
        shapes = []
        for number in range(4):
            reference = Reference(
                PROBLEM, Seeds(b"key"), "fp32", cuda=False, hidden_workloads=HIDDEN, workload=number
            )
            shapes.append(list(reference.inputs(0)[0].shape))
        assert shapes == [[16, 16], [4, 16], [1, 16], [37, 16]]

    def test_references_on_one_problem_share_weights(self) -> None:
        layers = "self.linear = nn.Linear(features, features)"
        source = PROBLEM.replace(layers, f"{layers}\n        self.norm = nn.BatchNorm1d(features)")
        source = source.replace("self.linear(x)", "self.norm(self.linear(x))")

        def on(workload: int, like: Reference | None = None, text: str = source) -> Reference:
            return Reference(text, Seeds(b"key"), "bf16", cuda=False, workload=workload, like=like)

        def held(reference: Reference) -> dict[str, int]:
            return {name: value.data_ptr() for name, value in reference._model.state_dict().items()}

        def output(reference: Reference) -> torch.Tensor:
            return reference.outputs(reference.inputs(1), 1).leaves[0]

        first, apart = on(0), on(1)
        before = output(first)  # changes the running statistics
        second = on(1, like=first)
        shared = {name for name, place in held(first).items() if held(second)[name] == place}
        assert shared == {"linear.weight", "linear.bias", "norm.weight", "norm.bias"}
        assert second.weights is first.weights
        assert torch.equal(output(second), output(apart))
        second.reweigh("other")
        assert not torch.equal(output(second), output(apart))
        second.restore_weights()
        assert torch.equal(output(first), before)
        unsteady = source.replace("super().__init__()", "super().__init__(); torch.seed()")
        one = on(0, text=unsteady)
        other = on(1, one, unsteady)
        assert not set(held(one).values()) & set(held(other).values())

    def test_wrong_workloads_are_the_references_failure(self) -> None:
        with pytest.raises(ReferenceFailed, match="workloads cannot be used: ValueError: get_workloads"):
            Reference(PROBLEM.replace('"name": "wide", ', ""), Seeds(b"key"), "fp32", cuda=False)

    def test_module_needs_one_of_the_two(self) -> None:
        source = REFERENCE.replace("def get_inputs", "def other")
        with pytest.raises(ReferenceFailed, match="defines no get_inputs"):
            Reference(source, Seeds(b"key"), "fp32", cuda=False)


def test_hidden_workloads_make_another_question() -> None:
    def question(**fields: Any) -> Question:
        return Question.of(EvaluationRequest(custom_model_src="x = 1", **fields), None, [])

    assert question(hidden_workloads="a") != question(hidden_workloads="b") != question()
    assert "hidden_workloads" not in EvaluationRequest().model_dump()


@pytest.mark.slow
class TestJudge:
    def test_kernel_right_on_all_passes_and_lists_them(self, judge: LiveJudge) -> None:
        answer = judge.evaluate(with_forward(HONEST), PROBLEM, measure_performance=True)
        metadata = answer["metadata"]
        assert metadata["status"] == "passed", metadata
        assert answer["runtime_stats"] == {"fast_p": 1.0, "timing": "interpreter"}
        assert "worst_workload" not in metadata
        found = [
            (each["name"], each["weight"], each["inputs"], each["status"]) for each in metadata["workloads"]
        ]
        assert found == [
            ("square", 1.0, "float32[16, 16]", "passed"),
            ("wide", 3.0, "float32[4, 16]", "passed"),
            ("one row", 1.0, "float32[1, 16]", "passed"),
        ]

    def test_workload_without_elements_raises_no_flags(self, judge: LiveJudge) -> None:
        empty = HIDDEN.replace("secret", "empty").replace("37", "0")
        source = PASSING.replace("        relu_kernel[", "        if h.numel():\n            relu_kernel[")
        request = {"original_model_src": PROBLEM, "hidden_workloads": empty}
        verdict = judged(judge, source, request=request)["verdict"]
        assert verdict["status"] == "passed"
        assert not {"no_own_kernel", "constant_inputs"} & set(str(verdict["metadata"]).split("'"))
        flags = verdict["metadata"]["problem_flags"]
        assert "trivial_workload" in flags
        assert "degenerate_problem" not in flags

    def test_partly_correct_kernel_names_the_failing_workload(self, judge: LiveJudge) -> None:
        metadata = judge.evaluate(SQUARE_ONLY, PROBLEM)["metadata"]
        assert metadata["status"] == "wrong_value"
        assert metadata["worst_workload"] == {"name": "wide", "why": "wrong_value"}
        assert [each["correctness"] for each in metadata["workloads"]] == [True, False, False]
        assert metadata["feedback"].startswith(
            "it fails on workload 'wide' (float32[4, 16]) and passes on 1 of 3 workloads\nwrong_value: "
        )

    @pytest.mark.parametrize(
        ("body", "statuses"),
        [
            ("os._exit(0)", ["passed", "crash", "passed"]),
            ("time.sleep(60)", ["passed", "timeout", "not_checked"]),
        ],
    )
    def test_failure_on_one_shape_belongs_to_its_workload(
        self, judge: LiveJudge, body: str, statuses: list[str]
    ) -> None:
        candidate = with_forward(f"if x.shape[0] == 4:\n    {body}\n{HONEST}")
        answer = judge.evaluate(candidate, PROBLEM, timeout=6)
        metadata = answer["metadata"]
        assert metadata["status"] == statuses[1]
        assert metadata["worst_workload"] == {"name": "wide", "why": statuses[1]}
        assert [each["status"] for each in metadata["workloads"]] == statuses
        assert answer["success"] is (statuses[1] != "timeout")

    def test_time_limit_is_that_of_all_workloads(self, judge: LiveJudge) -> None:
        slow = "if not hasattr(self, 'slept'):\n    self.slept = time.sleep(3)\n"
        metadata = judge.evaluate(with_forward(slow + HONEST), PROBLEM, timeout=8)["metadata"]
        assert metadata["workloads"][0]["status"] == "passed", metadata
        assert metadata["status"] == metadata["workloads"][2]["status"] == "timeout"
        assert "the time limit is that of all workloads together" in metadata["feedback"]

    def test_hidden_workload_gives_nothing_away(self, judge: LiveJudge) -> None:
        request = {"original_model_src": PROBLEM, "hidden_workloads": HIDDEN}
        metadata = judged(judge, NOT_THIRTY_SEVEN, request=request)["verdict"]["metadata"]
        assert metadata["status"] == "wrong_value"
        assert metadata["worst_workload"] == {"name": "a hidden workload", "why": "wrong_value"}
        listed = metadata.pop("workloads")
        assert (listed[3]["name"], listed[3]["hidden"], listed[3]["inputs"]) == ("secret", True, "")
        assert "37" not in json.dumps(metadata | {"sandbox": ""})
        assert "secret" not in json.dumps(metadata)
        assert "a hidden workload" in metadata["feedback"]
        # without it the kernel passes: the two requests do not share a verdict
        request = {"original_model_src": PROBLEM}
        assert judged(judge, NOT_THIRTY_SEVEN, request=request)["verdict"]["status"] == "passed"

    def test_numbers_by_shape_work_with_a_real_kernel(self, judge: LiveJudge) -> None:
        source = PASSING.replace("BLOCK=64", "BLOCK=BLOCK").replace("), 64),)", "), BLOCK),)")
        source = source.replace(
            "class ModelNew", "BLOCK = 16\nTUNABLES = {'BLOCK': [8, 16]}\n\nclass ModelNew"
        )
        text = with_dispatch(source, {(5, 5): {"BLOCK": 8}, (3, 5): {"BLOCK": 16}})
        metadata = judge.evaluate(text, PROBLEM)["metadata"]
        assert metadata["status"] == "passed", metadata
        assert not [flag for flag in metadata.get("integrity", []) if flag.startswith("static")]

    def test_problem_report_lists_workloads_and_names_failing_one(self, judge: LiveJudge) -> None:
        body = {"original_model_src": PROBLEM, "hidden_workloads": HIDDEN}
        report = judge.post("/v2/problem", body).json()
        assert report["ok"], report
        assert [each["inputs"] for each in report["workloads"]] == [
            "float32[16, 16]",
            "float32[4, 16]",
            "float32[1, 16]",
            "",
        ]
        bad = judge.post("/v2/problem", {"original_model_src": PROBLEM.replace("(1, 16)", "(1, 15)")}).json()
        assert not bad["ok"]
        assert bad["reason"].startswith("workload 'one row': forward() fails: ")

    def test_compile_and_profile_use_the_first(self, judge: LiveJudge) -> None:
        for kind, status in (("compile", "passed"), ("profile", "not_checked")):
            answer = judged(judge, SQUARE_ONLY, kind=kind, request={"original_model_src": PROBLEM})
            assert answer["report"]["status"] == status


PATCHING = """
import online_judge.evaluator.correctness.comparison as comparison
comparison.difference = lambda *given, **options: None
comparison.equals = lambda *given, **options: True

def get_workloads():
    return [{"name": "secret", "get_inputs": lambda: [torch.randn(9, 16)]}]
"""


@pytest.mark.slow
def test_hidden_source_is_isolated_from_other_clients(judge: LiveJudge) -> None:
    wrong = with_forward("return x * 2")
    judge.evaluate(wrong, REFERENCE, hidden_workloads=PATCHING)
    assert judge.evaluate(wrong + "# again\n", REFERENCE)["metadata"]["status"] == "wrong_value"


@pytest.mark.slow
def test_hidden_workload_error_does_not_describe_it(judge: LiveJudge) -> None:
    failing = """
def get_workloads():
    return [{"name": "secret", "get_inputs": lambda: [torch.randn(37, 5)]}]
"""
    answer = judge.evaluate(PASSING, PROBLEM, hidden_workloads=failing)
    assert "the reference fails on a hidden workload" in answer["error"]
    assert not {"secret", "37"} & set(answer["error"].replace("'", " ").split())
