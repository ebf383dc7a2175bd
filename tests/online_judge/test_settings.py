from pathlib import Path

import pytest

from adaexplore.core.errors import ConfigError
from online_judge.settings import Settings, bind_address


def test_defaults_are_those_of_the_protocol() -> None:
    settings = Settings.from_environment({})
    assert (settings.judge_device, settings.compile_target) == ("auto", "sm_90")
    assert (settings.max_queue_size, settings.runtime_timeout_s) == (100, 600)
    assert settings.max_concurrent_evals is None, "what fits, where the release has 1"
    assert (settings.available_gpus, settings.allocation_mode, settings.build_dir) == (None, "auto", None)
    assert bind_address({}) == ("127.0.0.1", 12017)


def test_a_request_can_only_lower_the_time_limit() -> None:
    settings = Settings(runtime_timeout_s=60)
    assert [settings.limit_s(asked) for asked in (None, 0, 7, 90)] == [60, 60, 7, 60]


def test_secret_is_random_unless_given() -> None:
    assert Settings.from_environment({}).secret != Settings.from_environment({}).secret
    assert Settings.from_environment({"ADAEXPLORE_JUDGE_SECRET": "x"}).secret == b"x"


def test_gpu_list_drops_non_numbers() -> None:
    assert Settings.from_environment({"AVAILABLE_GPUS": "0, x,2,2"}).available_gpus == (0, 2)


def test_unknown_allocation_mode_is_auto_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert Settings.from_environment({"GPU_ALLOCATION_MODE": "best"}).allocation_mode == "auto"
    assert "GPU_ALLOCATION_MODE" in caplog.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AVAILABLE_GPUS", "a,b"),
        ("JUDGE_DEVICE", "gpu"),
        ("COMPILE_TARGET", "hopper"),
        ("MAX_CONCURRENT_EVALS", "0"),
        ("MAX_QUEUE_SIZE", "-1"),
        ("RUNTIME_TIMEOUT", "soon"),
        ("CPU_MAX_FLOPS", "nan"),
        ("JUDGE_REQUIRE_SANDBOX", "yes"),
    ],
)
def test_unusable_value_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Settings.from_environment({name: value})


def test_no_sandbox_is_required_unless_asked_for() -> None:
    assert Settings.from_environment({}).require_sandbox == "none"
    assert Settings.from_environment({"JUDGE_REQUIRE_SANDBOX": "Full"}).require_sandbox == "full"


def test_flops_may_be_written_with_an_exponent() -> None:
    assert Settings.from_environment({"CPU_MAX_FLOPS": "3e9"}).cpu_max_flops == 3e9


def test_port_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="PORT"):
        bind_address({"PORT": "70000"})


def test_timing_root_can_be_moved(tmp_path: Path) -> None:
    assert Settings.from_environment({"TIMING_ROOT": str(tmp_path)}).timing_root == tmp_path


@pytest.mark.parametrize("name", ["", "/dev/null", "/proc/version/state"])
def test_state_that_is_no_regular_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="JUDGE_STATE"):
        Settings.from_environment({"JUDGE_STATE": name or str(tmp_path)})


def test_state_may_be_a_file_or_absent(tmp_path: Path) -> None:
    for path in (tmp_path / "new" / "state", tmp_path / "there"):
        (tmp_path / "there").touch()
        assert Settings.from_environment({"JUDGE_STATE": str(path)}).state_file == path


def test_build_dir_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="BUILD_DIR"):
        Settings.from_environment({"BUILD_DIR": str(tmp_path / "file")})
