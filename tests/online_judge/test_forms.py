"""Forms of inputs, outputs and models: what is given to ``Model`` and ``forward``, and candidates in each."""

from typing import Any

import pytest
import torch

from adaexplore.core.dialects.arguments import Arguments
from adaexplore.core.text.dispatch import with_dispatch
from online_judge.evaluator.reference import Reference, ReferenceFailed, Seeds

from .forms import FORMS, KEYWORDS, PAIR, layer, layer_candidate, scaling
from .live import LiveJudge
from .test_v2_jobs import judged

HEAD = "import torch\nimport torch.nn as nn\n"
PLAIN = HEAD + (
    "class Model(nn.Module):\n    def forward(self, {parameters}):\n        return {result}\n"
    "def get_inputs():\n    return {inputs}\ndef get_init_inputs():\n    return None\n"
)


def reference(source: str, **options: Any) -> Reference:
    return Reference(source, Seeds(b"key"), "fp32", cuda=False, **options)


def plain(parameters: str, result: str, inputs: str) -> str:
    return PLAIN.format(parameters=parameters, result=result, inputs=inputs)


def used(source: str) -> None:
    made = reference(source)
    made.outputs(made.inputs(0), 0)


def called(parameters: str, result: str, inputs: str) -> tuple[list[object], tuple[str, ...]]:
    """Call a reference; return the kinds of its inputs and the names of those given by keyword."""
    made = reference(plain(parameters, result, inputs))
    drawn = made.inputs(0)
    made.outputs(drawn, 0)
    return [type(each) for each in drawn], made.names


X, Y = "torch.rand(3)", "torch.rand(4)"


class TestReading:
    @pytest.mark.parametrize(
        ("given", "wanted"),
        [
            ("[16]", Arguments((16,))),
            ("(16, 0.2)", Arguments((16, 0.2))),
            ("16", Arguments((16,))),
            ('{"width": 16}', Arguments((), {"width": 16})),
            ('[[], {"width": 16, "slope": 0.2}]', Arguments((), {"width": 16, "slope": 0.2})),
            ('([16], {"slope": 0.2})', Arguments((16,), {"slope": 0.2})),
            ("[[16], {}]", Arguments((16,))),
        ],
    )
    def test_constructor_gets_what_the_form_means(self, given: str, wanted: Arguments) -> None:
        assert reference(layer("[torch.rand(8, 16)]", given)).init_inputs == wanted

    def test_empty_list_and_dict_are_no_arguments(self) -> None:
        source = plain("x", "x if self.bias is None else 2 * x", f"[{X}]")
        source = source.replace("return None", "return [[], {}]").replace(
            "    def forward",
            "    def __init__(self, scale=2.0, bias=None):\n        super().__init__()\n"
            "        self.bias = bias\n    def forward",
        )
        made = reference(source)
        (x,) = made.inputs(0)
        assert torch.equal(made.outputs([x], 0).leaves[0], x)

    @pytest.mark.parametrize(
        ("parameters", "result", "inputs", "kinds", "names"),
        [
            ("x, scale", "x * scale", f'{{"x": {X}, "scale": 2}}', [torch.Tensor, int], ("x", "scale")),
            ("x, *, scale", "x * scale", f'[[{X}], {{"scale": 2}}]', [torch.Tensor, int], ("scale",)),
            ("batch", 'batch["x"]', f'{{"x": {X}}}', [dict], ()),
            ("x", "x[:, :2]", "torch.rand(1, 3)", [torch.Tensor], ()),
            ("a, b", "a + b", "torch.rand(2, 3)", [torch.Tensor] * 2, ()),
            ("xs, options", 'xs[0] * options["k"]', f'[[{X}, {Y}], {{"k": 2}}]', [list, dict], ()),
            ("*given, **named", 'given[0] * named["k"]', f'[[{X}], {{"k": 2}}]', [torch.Tensor, int], ("k",)),
            ("xs, options=None", "torch.stack(xs)", f"[[{X}], {{}}]", [list, dict], ()),
            ("x, mask=None", "torch.relu(x)", f"[[{X}], {{}}]", [torch.Tensor], ()),
            ("", "torch.ones(3)", "None", [], ()),
            ("x, y", "x", f"(each for each in [{X}, None])", [torch.Tensor, type(None)], ()),
        ],
    )
    def test_forward_gets_what_its_signature_takes(
        self, parameters: str, result: str, inputs: str, kinds: list[object], names: tuple[str, ...]
    ) -> None:
        assert called(parameters, result, inputs) == (kinds, names)

    def test_keyword_inputs_are_named_in_their_description(self) -> None:
        made = reference(layer(KEYWORDS))
        made.inputs(0)
        assert made.described_inputs == "float32[8, 16], scale=3.0"

    def test_keyword_tensors_get_the_dtype_of_the_run(self) -> None:
        source = layer('{"x": torch.randn(8, 16), "scale": torch.rand(16)}')
        made = Reference(source, Seeds(b"key"), "bf16", cuda=False)
        assert {each.dtype for each in made.inputs(0) if isinstance(each, torch.Tensor)} == {torch.bfloat16}

    def test_factory_function_still_makes_the_module(self) -> None:
        source = scaling(
            f"[{X}]", "def Model():\n    return nn.ReLU()\n", "def get_init_inputs():\n    return []\n"
        )
        assert reference(source).init_inputs == Arguments()

    def test_backward_gives_gradients_of_keyword_inputs(self) -> None:
        made = reference(layer('[[torch.randn(8, 16)], {"scale": torch.rand(16)}]'), direction="both")
        outputs = made.outputs(made.inputs(0), 0)
        assert [made.output_name(outputs, index) for index in range(3)] == [
            "output 0",
            "the gradient of floating input 0",
            "the gradient of floating input 1",
        ]


class TestRefusal:
    @pytest.mark.parametrize(
        ("source", "why"),
        [
            (
                plain("x, mask=None", "x[0] * 1", f"[[{X}], {{}}]"),
                "return the list",
            ),
            (plain("x", "x", "object()"), "of type object; return a list"),
            (
                plain("x", "None", f"[{X}]"),
                "forward() returns no tensor; let it",
            ),
            (plain("x, y", "x", f'{{"x": {X}, "z": 1}}'), "argument 'z'"),
            (layer(f"[Pair({X}, 1)]", above=PAIR), "gives a value of type reference.Pair"),
            (layer(f"[{X}]", '[[], {"widht": 16}]'), "'widht'"),
            (scaling(f"[{X}]", "Model = nn.ReLU()\n"), "Model is neither a class nor a function"),
            (scaling(f"[{X}]", more="def get_init_inputs():\n    return [1, 2, 3]\n"), "remove it"),
        ],
    )
    def test_form_without_meaning_is_one_clear_line(self, source: str, why: str) -> None:
        with pytest.raises(ReferenceFailed) as failed:
            used(source)
        assert why in str(failed.value)
        assert "\n" not in str(failed.value)

    def test_keywords_that_change_are_refused(self) -> None:
        top = "def Model(x=None, y=None):\n    return torch.ones(3)\n"
        made = reference(scaling("{'xy'[torch.randint(2, ()).item()]: 1}", top))
        with pytest.raises(ReferenceFailed, match="other keyword arguments on another call"):
            [made.inputs(trial) for trial in range(20)]


class TestJudge:
    @pytest.mark.parametrize(("problem", "candidate"), FORMS.values(), ids=FORMS)
    def test_right_candidate_passes_in_each_form(
        self, judge: LiveJudge, problem: str, candidate: str
    ) -> None:
        answer = judge.evaluate(candidate, problem, num_correct_trials=2)
        assert answer["metadata"]["status"] == "passed", answer

    @pytest.mark.parametrize("form", ["inputs by keyword", "function", "dataclass"])
    def test_wrong_candidate_fails_in_each_form(self, judge: LiveJudge, form: str) -> None:
        problem, candidate = FORMS[form]
        answer = judge.evaluate(candidate.replace("* scale, mask", "* scale * 1.5, mask"), problem)
        assert answer["metadata"]["status"] == "wrong_value", answer

    @pytest.mark.parametrize("form", ["init by keyword", "keyword tensor", "function by keyword"])
    def test_compile_job_reads_the_same_form(self, judge: LiveJudge, form: str) -> None:
        problem, candidate = FORMS[form]
        answer = judged(judge, candidate, kind="compile", request={"original_model_src": problem})
        assert answer["report"]["status"] == "passed", answer

    @pytest.mark.parametrize("form", ["keyword tensor", "function"])
    def test_gradients_are_judged_in_each_form(self, judge: LiveJudge, form: str) -> None:
        problem, _ = FORMS[form]
        twin = problem + "\nModelNew = Model\n"
        answer = judge.evaluate(twin, problem, direction="both")
        assert answer["metadata"]["status"] == "passed", answer

    def test_hidden_workload_may_have_another_form(self, judge: LiveJudge) -> None:
        entry = "{'name': 'h', 'get_inputs': lambda: {'x': torch.randn(2, 16)}}"
        hidden = f"def get_workloads():\n    return [{entry}]\n"
        answer = judge.evaluate(layer_candidate(), layer(KEYWORDS), hidden_workloads=hidden)
        assert [each["status"] for each in answer["metadata"]["workloads"]] == ["passed", "passed"]

    def test_numbers_by_shape_read_keyword_inputs(self, judge: LiveJudge) -> None:
        candidate = layer_candidate().replace("BLOCK=1024", "BLOCK=BLOCK")
        candidate += "\nBLOCK = 1024\nTUNABLES = {'BLOCK': [512, 1024]}\n"
        shaped = with_dispatch(candidate, {(4, 5): {"BLOCK": 512}})
        assert "_by_shape" in shaped
        answer = judge.evaluate(shaped, layer(KEYWORDS))
        assert answer["metadata"]["status"] == "passed", answer
