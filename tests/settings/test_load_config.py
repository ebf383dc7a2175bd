"""YAML files and overrides become a configuration, or one line that says what is wrong."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaexplore.core.errors import ConfigError
from adaexplore.settings.config import RunConfig
from adaexplore.settings.load import load_config, resolved_yaml
from adaexplore.settings.yaml_text import parse_mapping

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def write(tmp_path: Path):
    def write_config(text: str) -> Path:
        path = tmp_path / "c.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_config


def complaint(path: Path | None, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path, overrides)
    message = str(caught.value)
    assert "" not in message.splitlines()
    assert caught.value.exit_code == 2
    return message


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "{}\n"])
def test_empty_file_means_defaults(write, text: str) -> None:
    assert load_config(write(text)) == load_config(None) == RunConfig()


def test_override_wins_over_file_and_later_over_earlier(write) -> None:
    path = write("seed: 1\nlevel: 2\n")
    config = load_config(path, ["seed=2", "seed=3", "gpu_ids=[0, 1]", "temperature=null"])
    assert (config.seed, config.level, config.gpu_ids, config.temperature) == (3, 2, (0, 1), None)


def test_override_value_may_hold_equal_signs() -> None:
    assert load_config(None, ["base_url=http://host/v1?a=b"]).base_url == "http://host/v1?a=b"


def test_scalars_mean_what_they_look_like(write) -> None:
    config = load_config(
        write("tf32: off\ntolerance: 1e-3\nsuffix: 2026-01-02\nproblem_id: 010\nmodel_name: no\n")
    )
    assert (config.tf32, config.tolerance, config.suffix) == ("off", 1e-3, "2026-01-02")
    assert (config.problem_id, config.model_name) == (10, "no")


def test_unknown_key_names_the_nearest_known_one(write) -> None:
    message = complaint(write("seed: 1\ntotl_steps: 3\n"))
    assert "c.yaml:2: unknown key \"totl_steps\", the nearest known one is 'total_steps'" in message


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("total_steps='25'", 'total_steps: expected an integer, got "25"'),
        ("total_steps=2.5", "total_steps: expected an integer, got 2.5"),
        ("total_steps=0", "total_steps: expected a number >= 1, got 0"),
        ("total_steps=1000001", "total_steps: expected a number <= 1000000, got 1000001"),
        ("seed=true", "seed: expected an integer, got true"),
        ("p_large=1.5", "p_large: expected a number <= 1.0, got 1.5"),
        ("p_large=true", "p_large: expected a number, got true"),
        ("reward_alpha=.nan", "reward_alpha: expected a finite number, got NaN"),
        ("geometric_p=0", "geometric_p: expected a number > 0.0, got 0"),
        ("tolerance=0", "tolerance: expected a number > 0.0, got 0"),
        ("debug=yes", 'debug: expected true or false, got "yes"'),
        ("suffix=7", "suffix: expected text, got 7; put it in quotes"),
        ("model_name=null", "model_name: expected text, got null"),
        ("save_path=''", 'save_path: expected text that is not empty, got ""'),
        ("gpu_ids=3", "gpu_ids: expected a list such as [0, 1], got 3"),
        ("omit_facts=()", 'omit_facts: expected a list such as [versions], got "()"'),
        ("gpu_ids=[]", "gpu_ids: expected a list that is not empty, got []"),
        ("gpu_ids=[0, x]", 'gpu_ids[1]: expected an integer, got "x"'),
        ("gpu_ids=[-1]", "gpu_ids[0]: expected a number >= 0, got -1"),
        ("problem_id=[1]", "problem_id: expected an integer or text, got [1]"),
        ("compile_target=h100", 'compile_target: expected a target such as sm_90, got "h100"'),
        (
            "agent_type=mcts",
            "agent_type: expected one of 'MCTS', 'IRS', 'IRL', 'IRB', 'IRLE' or 'PS', got \"mcts\"",
        ),
        ("tf32=no", "tf32: expected one of 'paper', 'off' or 'on', got \"no\""),
    ],
)
def test_wrong_value_names_key_value_and_expectation(override: str, expected: str) -> None:
    assert complaint(None, override) == f"--set: {expected}"


def test_an_override_without_a_value_is_refused() -> None:
    assert complaint(None, "save_path=") == "--set save_path=: expected a value after =, or null for none"


@pytest.mark.parametrize("text", ["run #1", "a\nb", "sh -c 'cat #'"])
def test_override_that_yaml_would_change_is_refused(text: str) -> None:
    assert complaint(None, f"save_path={text}").endswith("; put the value in quotes")
    assert load_config(None, [f"save_path={json.dumps(text)}"]).save_path == text


def test_every_problem_is_reported_where_it_stands(write) -> None:
    path = write("level: two\n\nspeed: 3\n")
    message = complaint(path, "total_steps", "p_large=2", "server_type=[")
    assert len(message.splitlines()) == 5
    assert f"{path}:1: level: expected an integer" in message
    assert f"{path}:3: unknown key" in message
    assert "--set total_steps: expected key=value" in message
    assert "--set: p_large: expected a number <= 1.0" in message
    assert "--set server_type=[: " in message


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("seed: 1\nlevel: 2\nseed: 3\n", ":3: ", "key 'seed' is given twice (first on line 1)"),
        ("- seed\n", ": ", "found a list"),
        ("seed\n", ": ", "found a single value"),
        ("seed: 1\nlevel: [1,\n", ":3: ", "expected the node content"),
        ("seed: 1\n\tlevel: 2\n", ":2: ", "cannot start any token"),
        ("1: 2\n", ":1: ", "expected a name as key, got 1"),
        ("level: {a: 1, a: 2}\n", ":1: ", "given twice"),
        ("seed: !!python/object:os.system 1\n", ":1: ", "constructor"),
        ("a: 1\n---\nb: 2\n", ":2: ", "another document"),
        ("'': 1\n", ":1: ", 'unknown key ""'),
        ("gpu_ids: &a [*a]\n", ":1: ", "gpu_ids[0]: expected an integer, got [["),
        (f"level: 1\nseed: {'9' * 5000}\n", ":2: ", "a number with 5000 digits"),
        ("[" * 5000, ": ", "nested too deeply"),
    ],
)
def test_bad_yaml_names_file_and_line(write, text: str, where: str, what: str) -> None:
    path = write(text)
    message = complaint(path)
    assert message.startswith(f"{path}{where}")
    assert what in message


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "no.yaml") in complaint(tmp_path / "no.yaml")
    assert str(tmp_path) in complaint(tmp_path)
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in complaint(binary)


def test_ignored_key_is_accepted_with_a_warning(write, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load_config(write("max_small_failures: 5\n"))
    assert "max_small_failures has no effect" in caplog.text


def test_config_of_the_repository_is_found_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config(Path("config/quickstart.yaml")).server_type == "offline"


def test_resolved_yaml_reads_back_the_same(write) -> None:
    overrides = ["preset=default", "suffix='1e-3'", "model_name='off'", "base_url='null'", "gpu_ids=[0]"]
    config = load_config(None, [*overrides, "problem_id='05'", "tolerance=1e-7"])
    assert load_config(write(resolved_yaml(config))) == config


def test_resolved_yaml_holds_every_key_in_use() -> None:
    values, _ = parse_mapping(resolved_yaml(RunConfig(preset="default")))
    assert list(values) == list(RunConfig.model_fields)
    assert (values["tier"], values["baseline"]) == ("strict", "eager")


@settings(deadline=None)
@given(
    text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
    number=st.floats(min_value=1e-300, max_value=1e300),
)
def test_any_text_and_number_survive_resolved_yaml(text: str, number: float) -> None:
    config = RunConfig(suffix=text, tolerance=number)
    values, _ = parse_mapping(resolved_yaml(config))
    assert RunConfig.model_validate(values) == config


@pytest.mark.parametrize(
    ("value", "said"),
    [(r'"a\0b"', "NUL character"), (r'"\ud800"', "text without halves of surrogate pairs")],
)
def test_text_invalid_in_a_path_is_an_error(write, value: str, said: str) -> None:
    for asked in ((None, [f"save_path={value}"]), (write(f"seed: 1\nsave_path: {value}\n"), [])):
        with pytest.raises(ConfigError, match=said) as raised:
            load_config(*asked)
        assert "\0" not in str(raised.value)


@settings(deadline=None)
@given(text=st.text())
def test_any_override_is_a_value_or_one_line(text: str) -> None:
    message = ""
    try:
        load_config(None, [f"suffix={text}"])
    except ConfigError as error:
        message = str(error)
    assert len(message.splitlines()) <= 1


RELEASED = {
    "KB-l2": {
        "test_source": "KB",
        "level": 2,
        "test_list_path": "config/test_list/test_list_2.txt",
        "gpu_name": "NVIDIA GPU",
        "total_steps": 50,
        "exploration_weight": 0.3,
        "expand_exploration_ratio": 1,
        "reward_alpha": 0,
        "p_large": 0.2,
        "pool_size_extra_max": 0,
        "geometric_p": 0.6,
        "disable_reviewer": False,
        "num_processes": 10,
        "memory_update": False,
        "general_memory_path": "results/memory/general_memory_v1_200.txt",
        "save_path": "outputs/KB-l2_AdaExplore_50",
    },
    "KB-l3": {
        "test_source": "KB",
        "level": 3,
        "test_list_path": "config/test_list/test_list_3.txt",
        "gpu_name": "NVIDIA GPU",
        "total_steps": 50,
        "exploration_weight": 0.3,
        "expand_exploration_ratio": 0.5,
        "reward_alpha": 0,
        "p_large": 0.2,
        "pool_size_extra_max": 0,
        "geometric_p": 0.6,
        "disable_reviewer": False,
        "num_processes": 10,
        "memory_update": False,
        "general_memory_path": "results/memory/general_memory_v1_200.txt",
        "save_path": "outputs/KB-l3_AdaExplore_50",
    },
    "SYN-v1": {
        "test_source": "SYN",
        "level": 1,
        "test_list_path": "config/test_list/test_list_syn.txt",
        "gpu_name": "A6000",
        "total_steps": 25,
        "exploration_weight": 0.25,
        "expand_exploration_ratio": 1,
        "reward_alpha": 1,
        "p_large": 0.25,
        "pool_size_extra_max": 3,
        "geometric_p": 0.5,
        "disable_reviewer": True,
        "num_processes": 15,
        "memory_update": True,
        "general_memory_path": "outputs/SYN-v1_example_run/general_memory.txt",
        "save_path": "outputs/SYN-v1_example_run",
    },
}
RELEASED_EVERYWHERE = {
    "preset": "paper",
    "agent_type": "MCTS",
    "problem_id": 1,
    "dtype_str": "fp32",
    "gpu_architecture": "Ampere",
    "gpu_ids": (0,),
    "use_remote_eval": True,
    "remote_eval_url": "http://127.0.0.1:12017",
    "server_type": "openai",
    "model_name": "gpt-5-mini",
    "max_completion_tokens": 16384,
    "small_step_limit": 2,
    "pool_size": 5,
    "softmax_temperature": 1,
    "max_memory_round": 5,
    "knowledge_1_threshold": 3,
    "max_small_failures": 5,
    "debug": False,
    "dummy": False,
    "tolerance": 5e-2,
    "tf32": "paper",
    "tier": "legacy",
    "baseline": "eager",
    "temperature": 1.0,
}


RELEASED_NAMES = {
    "KB-l2": "config_KB-l2_AdaExplore_50.yaml",
    "KB-l3": "config_KB-l3_AdaExplore_50.yaml",
    "SYN-v1": "config_SYN-v1_none_MCTS.yaml",
}


@pytest.mark.parametrize("name", RELEASED)
def test_released_configuration_means_what_it_meant(name: str) -> None:
    config = load_config(ROOT / "config" / name / RELEASED_NAMES[name])
    expected = {**RELEASED_EVERYWHERE, **RELEASED[name]}
    assert {key: getattr(config, key) for key in expected} == expected


@pytest.mark.parametrize("name", RELEASED)
def test_shorter_name_is_the_same_configuration(name: str) -> None:
    folder = ROOT / "config" / name
    assert load_config(folder / "mcts.yaml") == load_config(folder / RELEASED_NAMES[name])


def test_quickstart_needs_no_gpu_key_or_judge() -> None:
    config = load_config(ROOT / "config/quickstart.yaml")
    assert (config.preset, config.server_type, config.judge_device) == ("default", "offline", "cpu")
    assert (config.use_remote_eval, config.save_path) == (False, "outputs/quickstart")
