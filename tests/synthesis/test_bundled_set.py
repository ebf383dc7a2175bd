"""What stands in datasets/KernelBench_syn/syn_v1 and what is said of it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from adaexplore.settings.environment import read_environment
from adaexplore.settings.load import load_config
from adaexplore.tasks.module_check import module_problem
from adaexplore.tasks.sources import load_tasks
from synthesis.catalogue import read_catalogue
from synthesis.manifest import Manifest

ROOT = Path(__file__).parents[2]
SET = ROOT / "datasets/KernelBench_syn/syn_v1"
REPORTS = sorted((ROOT / "results/synthesis").glob("syn_v1_*.json"))


def test_200_problems_are_listed_as_they_are() -> None:
    entries = Manifest(SET).entries
    assert [entry.id for entry in entries] == list(range(1, 201))
    assert len(list(SET.glob("*.py"))) == 200
    for entry in entries:
        text = (SET / f"{entry.id}.py").read_bytes()
        assert hashlib.sha256(text).hexdigest() == entry.hash
        assert module_problem(text.decode()) is None
        assert read_catalogue().operators_in(text.decode()) == entry.operators
        assert entry.elements <= 4_000_000


def test_graphs_are_unique_and_80_operators_occur() -> None:
    entries = Manifest(SET).entries
    assert len({entry.graph for entry in entries}) == 200
    assert len({name for entry in entries for name in entry.operators}) >= 80


def test_every_judge_that_looked_found_all_valid() -> None:
    assert REPORTS
    for path in REPORTS:
        report = json.loads(path.read_text())
        assert (report["tasks"], report["valid"], report["invalid"], report["duplicates"]) == (
            200,
            200,
            {},
            {},
        )


def test_page_says_what_the_manifest_says() -> None:
    page = (SET / "README.md").read_text()
    entries = Manifest(SET).entries
    used = {name for entry in entries for name in entry.operators}
    assert page.startswith(f"# syn_v1\n\n200 problems, {len(used)} distinct operators")
    for name in used:
        short = name.removeprefix("torch.").replace("nn.functional.", "F.")
        count = sum(name in entry.operators for entry in entries)
        assert re.search(rf"`{re.escape(short)}` {count}\b", page)


def test_the_configurations_of_the_set_select_it() -> None:
    for name in ("mcts", "adapt"):
        config = load_config(ROOT / f"config/SYN-v1/{name}.yaml", ["server_type=offline"])
        tasks = load_tasks(config, read_environment({}))
        assert [task.key for task in tasks] == [f"1_{n}" for n in range(1, 201)]
