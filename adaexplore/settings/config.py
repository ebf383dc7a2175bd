"""The configuration model: every key, its type, range and defaults in both presets."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from adaexplore.core.dialects.catalogue import source_of
from adaexplore.core.environment import FactName
from adaexplore.core.wire import (
    LEGACY_TOLERANCE,
    BaselineKind,
    DeviceKind,
    Direction,
    DtypeName,
    GpuModel,
    Tf32Policy,
    Tier,
)

_LONGEST_SHOWN = 200
_MOST_STEPS = 1_000_000

Preset = Literal["paper", "default"]
AgentType = Literal["MCTS", "IRS", "IRL", "IRB", "IRLE", "PS"]
TestSource = Literal["KB", "SYN", "FIT", "MLSYS", "TBG", "TBT"]
JudgeDevice = Literal["auto", DeviceKind]
ServerType = Literal["openai", "azure", "claude", "anthropic", "command", "mailbox", "replay", "offline"]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
ServiceTier = Literal["default", "flex", "priority"]
OpenaiApi = Literal["auto", "chat", "responses"]

BUNDLED_MEMORY = "results/memory/general_memory_v1_200.txt"

DEFAULT_PRESET: Mapping[str, Any] = {
    "dtype_str": "native",
    "total_steps": 50,
    "exploration_weight": 0.3,
    "reward_alpha": 0.0,
    "p_large": 0.2,
    "pool_size_extra_max": 0,
    "geometric_p": 0.6,
    "selection": "lineages",
    "directions": True,
    "tf32": "off",
    "tier": "auto",
    "repair_attempts": 2,
    "preflight": True,
    "compile_gate": True,
    "profile": True,
    "tune_s": 20.0,
}
"""Values of preset ``default`` that differ from the class defaults below, which are preset ``paper``."""

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
_FROM_LIST = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
GpuIds = Annotated[tuple[CountOrZero, ...], _FROM_LIST, Field(min_length=1)]
GpuModels = Annotated[tuple[GpuModel, ...], _FROM_LIST, Field(min_length=1)]
Paths = Annotated[
    tuple[Text, ...],
    _FROM_LIST,
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    Field(min_length=1),
]
FactNames = Annotated[tuple[FactName, ...], _FROM_LIST]


def required_tier(dtype: DtypeName, tf32: Tf32Policy) -> Tier:
    """Return the tier of ``tier: auto``: the precision that the run's own arithmetic can reach.

    With ``native`` the judge lowers it to ``half`` for a problem with an output in half precision.
    """
    if dtype in ("fp16", "bf16"):
        return "half"
    return "strict" if tf32 == "off" else "tf32"


class RunConfig(BaseModel):
    """The settings of a run; keys and meanings are those of the released YAML files.

    Class defaults are preset ``paper``. Missing keys take their preset's value when the model is
    created, so a finished configuration holds the values in use. Paths stay as written:
    :func:`adaexplore.settings.paths.locate` finds them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    preset: Preset = Field(
        default="paper",
        description="set of defaults for missing keys; without a configuration file `default`",
    )
    seed: int = Field(default=0, description="seed of all randomness")
    agent_type: AgentType = Field(default="MCTS", description="search policy")

    test_source: TestSource = Field(
        default="KB",
        description="`KB` (KernelBench-style folders), `SYN` (a synthesised set), or another benchmark "
        "(benchmark-tasks.md): `TBG`, `TBT` (TritonBench-G and -T), `FIT` (FlashInfer-Bench, SOL-ExecBench), "
        "`MLSYS` (MLSys'26)",
    )
    task: Paths | None = Field(
        default=None,
        description="problem files, or folders whose problems all run, as with `--task`; the keys from "
        "`test_source` to `problem_id` are not used then",
    )
    problem_root: Text | None = Field(
        default=None,
        description="folder of the problems: holds `level1/` ... for `KB`, `1.py` ... for `SYN`; null means "
        "`datasets/KernelBench` or `datasets/KernelBench_syn/syn_v1`; "
        "`KERNELBENCH_ROOT` overrides it for `KB`; other benchmarks: benchmark-tasks.md",
    )
    test_list_path: Text | None = Field(
        default=None,
        description="file that lists the tasks; null runs the task that `level` and `problem_id` name, or "
        "all of `problem_root` if neither is given",
    )
    level: Count | None = Field(default=1, description="level of the tasks without a list; null: all levels")
    problem_id: CountOrZero | Text | None = Field(
        default=1, description="problem without a list; null: all of the level"
    )
    dtype_str: DtypeName = Field(
        default="fp32",
        description="precision of weights and floating inputs; `native`: as the problem makes them",
    )
    direction: Direction = Field(
        default="forward",
        description="what is judged and timed: `forward` outputs alone, `both` gradients of inputs and "
        "parameters too; `backward` is the same, with prompts that ask for a faster backward pass; tasks of "
        "other benchmarks: `forward`",
    )

    gpu_name: Text = Field(
        default="auto",
        description="GPU named in prompts and to look up recorded baselines; `auto` asks the judge",
    )
    gpu_architecture: Text | None = Field(
        default=None, description="architecture named in prompts, such as `Hopper`; null leaves it out"
    )
    gpu_ids: GpuIds | None = Field(
        default=None,
        description="GPUs to use; each request goes to the one with the fewest; "
        "null means all that the judge has",
    )
    gpu_models: GpuModels | None = Field(
        default=None,
        description="GPU models of the judge to use, such as `[H100, H200]`; the search follows the first, "
        "correct kernels are judged on all; null means any GPU",
    )
    num_processes: Count = Field(default=8, description="tasks solved at the same time")

    use_remote_eval: bool = Field(
        default=False, description="true asks the judge at `remote_eval_url`, false starts one for the run"
    )
    remote_eval_url: Text = Field(default="http://127.0.0.1:12017", description="address of a running judge")
    judge_device: JudgeDevice = Field(
        default="auto",
        description="device of the run's own judge; `auto` takes CUDA if there is a GPU",
    )
    compile_target: Annotated[str, Field(pattern=r"^sm_\d{2,3}a?$")] = Field(
        default="sm_90",
        description="compile target on a machine without a GPU, such as `sm_90`",
    )
    tolerance: Annotated[float, Field(gt=0)] = Field(
        default=LEGACY_TOLERANCE,
        description="absolute and relative tolerance of every output element, at every tier; "
        "null takes the default",
    )
    tf32: Tf32Policy = Field(
        default="paper",
        description="TF32 policy: `off` for both sides, `on` for both, `paper` as released "
        "(off for the reference, Triton's own default for the candidate)",
    )
    tier: Tier = Field(
        default="legacy",
        description="precision that outputs must reach besides `tolerance`, by the reference's own error: "
        "`strict`, `tf32`, `half`, or `legacy` (nothing more); `auto` takes `half` for fp16 and bf16, "
        "else `strict` with `tf32: off` and `tf32` otherwise; with `dtype_str: native` an output in half "
        "precision makes it `half`",
    )
    timeout: Annotated[int, Field(ge=1, le=3600)] = Field(
        default=1800,
        description="seconds that the judge may work on one candidate; its own `RUNTIME_TIMEOUT` (600) "
        "is the most",
    )
    baseline: BaselineKind = Field(
        default="eager",
        description="what speedups are against: the reference run by PyTorch as it is (`eager`), or by "
        "`torch.compile` in its default mode (`compile`) or with `max-autotune`",
    )

    server_type: ServerType = Field(default="openai", description="type of model client")
    model_name: Text = Field(default="gpt-5-mini", description="name of the model")
    base_url: Text | None = Field(default=None, description="address of any service with the same API")
    command: Text | None = Field(
        default=None,
        description="program for `server_type: command`: prompt on its stdin, reply on its stdout",
    )
    mailbox_path: Text | None = Field(
        default=None,
        description="folder for `server_type: mailbox`; null means `mailbox/` in the run directory",
    )
    mailbox_wait_s: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="seconds without a new answer after which a run with a mailbox stops"
    )
    replay_path: Text | None = Field(default=None, description="recorded replies for `server_type: replay`")
    temperature: Annotated[float, Field(ge=0)] | None = Field(
        default=1.0, description="sampling temperature; null does not send one"
    )
    reasoning_effort: ReasoningEffort | None = Field(
        default=None, description="reasoning effort to ask for; null does not send one"
    )
    service_tier: ServiceTier | None = Field(
        default=None, description="OpenAI's service tier; `flex` is slower at half the price; null sends none"
    )
    openai_api: OpenaiApi = Field(
        default="auto",
        description="API for `server_type: openai`: `chat` completions or `responses`; `auto` takes these at "
        "OpenAI itself, chat at a `base_url`",
    )
    max_completion_tokens: Count = Field(
        default=16384, description="longest reply, reasoning included, in tokens"
    )

    preflight: bool = Field(
        default=False,
        description="have a draft that is sure to fail repaired before it is judged (preflight.md)",
    )
    compile_gate: bool = Field(
        default=False,
        description="have a draft that the judge's compiler refuses repaired before it is judged; "
        "needs a judge of this project",
    )

    repair_attempts: CountOrZero = Field(
        default=1, description="how often a reply may be sent back within one step (prompts.md)"
    )
    max_prompt_tokens: CountOrZero | None = Field(
        default=None,
        description="most tokens of a prompt, estimated as bytes / 4; prompts.md says what is left out "
        "first; null or 0: no limit",
    )

    max_concurrent_requests: Count | None = Field(
        default=None, description="maximum number of model requests in flight, all tasks together"
    )
    requests_per_minute: Count | None = Field(
        default=None,
        description="maximum number of model requests started within a minute, all tasks together",
    )
    tokens_per_minute: Count | None = Field(
        default=None,
        description="maximum number of input and output tokens within a minute, all tasks together",
    )
    max_cost_usd: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="dollars at list prices after which no step begins, those in flight counted "
        "beforehand; all sessions of a run together",
    )
    max_total_tokens: Count | None = Field(default=None, description="the same in input and output tokens")
    max_wall_s: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="seconds of one session after which no step begins; steps in flight are "
        "stopped 60 s later",
    )

    total_steps: int = Field(default=25, ge=1, le=_MOST_STEPS, description="steps per task")
    parallel_steps: Count = Field(
        default=1, description="steps of one task in flight at a time; a resumed run repeats unfinished ones"
    )
    seed_kernel: Text | None = Field(
        default=None,
        description="starting kernels, one step each: a file for every task, or a folder with one file "
        "per task, `<level>_<problem_id>.py` (or a folder of that name with several)",
    )
    tune_s: Annotated[float, Field(ge=0, le=600)] = Field(
        default=0.0,
        description="seconds that the judge may spend on a sweep of `TUNABLES`; 0 takes them as written",
    )
    profile: bool = Field(
        default=False, description="profile a correct kernel before steps build on it, and show the profile"
    )
    exploration_weight: Annotated[float, Field(ge=0)] = Field(
        default=0.25, description="w: weight of the exploration term in child scores"
    )
    expand_exploration_ratio: Annotated[float, Field(ge=0)] = Field(
        default=1.0, description="rho: share of w in the score of adding a child"
    )
    reward_alpha: Share = Field(
        default=1.0, description="alpha: 1 values a node by its best reward, 0 by its mean"
    )
    small_step_limit: CountOrZero = Field(
        default=2, description="small steps under one node after which only large steps follow"
    )
    p_large: Share = Field(default=0.25, description="probability of a large step below that limit")
    pool_size: CountOrZero = Field(default=5, description="kernels shown to a large step")
    pool_size_extra_max: CountOrZero = Field(
        default=3, description="maximum number of kernels from other branches if the pool is not full"
    )
    softmax_temperature: Annotated[float, Field(gt=0)] = Field(
        default=1.0, description="temperature for sampling those by speedup"
    )
    geometric_p: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.5, description="larger values sample fewer of those"
    )
    max_memory_round: Count = Field(
        default=5, description="kernels of the refinement chain shown to a small step"
    )
    selection: Literal["uct", "lineages"] = Field(
        default="uct",
        description="how agent type MCTS chooses: `uct` (the paper's) or `lineages` (search.md); "
        "`lineages` uses of the keys above `pool_size` and `max_memory_round` only",
    )
    lineage_patience: CountOrZero = Field(
        default=5,
        description="`lineages`: attempts without improvement after which the leading lineage yields "
        "to a large step",
    )
    lineage_reach: Annotated[float, Field(gt=0)] = Field(
        default=0.5,
        description="`lineages`: how far behind the best a lineage may be and still be refined, "
        "in units of the gain so far",
    )
    directions: bool = Field(
        default=False,
        description="ask steps that see the same kernels to try different things (search.md); "
        "not in preset `paper`",
    )
    omit_facts: FactNames = Field(
        default=(),
        description="facts that prompts do not state (prompts.md): "
        + ", ".join(f"`{name}`" for name in get_args(FactName))
        + "; preset `paper` states none",
    )
    disable_reviewer: bool = Field(default=False, description="small steps without a review")
    force_reviser: bool = Field(default=False, description="review even if all shown kernels are wrong")

    general_memory_path: Text | None = Field(
        default=BUNDLED_MEMORY, description="skill memory file; null means no rules in prompts"
    )
    knowledge_1_threshold: CountOrZero = Field(default=3, description="minimum count of a rule in prompts")
    memory_update: bool = Field(default=False, description="distil rules from failures into the memory file")
    max_small_failures: int | None = Field(default=None, description="accepted for old files; has no effect")

    save_path: Text | None = Field(
        default=None,
        description="run directory; null means `outputs/<agent>_<memory>_<tasks>_<steps>_<time>`",
    )
    suffix: Text | None = Field(default=None, description="appended to the run directory's default name")
    resume_from: Text | None = Field(default=None, description="run directory whose steps this run continues")
    dummy: bool = Field(default=False, description="random verdicts instead of a judge, to try a setup")
    debug: bool = Field(default=False, description="log at DEBUG level")

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = {key: value for key, value in data.items() if (key, value) != ("tolerance", None)}
        if given.get("preset") == "default":
            given = {**DEFAULT_PRESET, **given}
        if source_of(str(given.get("test_source"))) is not None:
            given.setdefault("dtype_str", "native")
        chosen = {"level", "problem_id"} & given.keys() or given.get("test_list_path") is not None
        if given.get("problem_root") is not None and not chosen:
            given |= {"level": None, "problem_id": None}
        if given.get("tier") == "auto":
            given["tier"] = required_tier(given.get("dtype_str", "fp32"), given.get("tf32", "paper"))
        return given

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        problems = list(_contradictions(self))
        if problems:
            raise ValueError("\n".join(problems))
        return self


def _contradictions(config: RunConfig) -> list[str]:
    """List the contradictions between keys that are each valid."""
    problems = []
    if source_of(config.test_source) is not None and config.dtype_str != "native":
        problems.append(
            f"dtype_str: {config.test_source} names its own dtypes, leave it out or set it to native"
        )
    if source_of(config.test_source) is not None and config.direction != "forward":
        problems.append(f"direction: {config.test_source} has no gradients to judge, set it to forward")
    if config.level is None and config.problem_id is not None:
        problems.append("level: null runs all levels, set problem_id to null too")
    if config.gpu_ids is not None:
        if len(set(config.gpu_ids)) != len(config.gpu_ids):
            problems.append(f"gpu_ids: {list(config.gpu_ids)} names a GPU twice")
        elif config.num_processes % len(config.gpu_ids):
            given = f"{len(config.gpu_ids)} gpu_ids"
            problems.append(f"num_processes: {config.num_processes} is not a multiple of the {given}")
    if config.gpu_models is not None:
        if config.gpu_ids is not None:
            problems.append("gpu_models: leave out gpu_ids, which names GPUs by number")
        if len({model.lower() for model in config.gpu_models}) != len(config.gpu_models):
            problems.append(f"gpu_models: {list(config.gpu_models)} names a model twice")
    if config.directions and config.preset == "paper":
        problems.append("directions: prompts of preset paper have none, set preset to default")
    if config.memory_update and config.general_memory_path is None:
        problems.append("general_memory_path: missing, memory_update needs a file to write to")
    if config.use_remote_eval and not is_address(config.remote_eval_url):
        given = repr(config.remote_eval_url[:_LONGEST_SHOWN])
        problems.append(f"remote_eval_url: expected an address that starts with http://, got {given}")
    return problems


def is_address(text: str) -> bool:
    """Return whether a text is the address of an HTTP service."""
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").encode("idna")  # raises for an invalid name
        return parts.scheme in ("http", "https") and host != b"" and parts.port != 0
    except ValueError:
        return False
