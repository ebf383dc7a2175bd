"""What the pages say, read without a browser."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from adaexplore.cli.main import main
from adaexplore.core.errors import RecordError, StorageError
from adaexplore.records.run_records import RunRecords
from adaexplore.records.steering import Action, Steering
from adaexplore.report.task_result import Best
from adaexplore.view import pages
from adaexplore.view.charts import Measure, run_curve
from adaexplore.view.export import export_page
from adaexplore.view.model import Node, RunView, Shape, TaskView
from adaexplore.view.pages import Shown
from adaexplore.view.sources import Source, Watcher, judge_queue, open_source, read_all
from tests.view.runs import verdict, write_run, write_step

RECORDED = Path(__file__).parents[4] / "shared" / "data" / "traces"


def read(folder: Path) -> tuple[Source, RunView]:
    source = open_source(folder)
    (view,) = read_all([source])
    return source, view


def step_page(folder: Path, key: str, step: int) -> str:
    source, run = read(folder)
    task = run.task(key)
    assert task is not None
    return pages.task_page(run, 0, task, task.node(step), source.details(key, step))


def test_the_overview_has_best_interval_and_failures(tmp_path):
    write_step(tmp_path / "2_1", 0)
    write_step(tmp_path / "2_1", 1, verdict("compile"))
    write_step(tmp_path / "2_1", 2, verdict("passed", 2.0))
    _, run = read(tmp_path)
    page = pages.overview_page(Shown((run,)))
    assert "2.00x [1.90, 2.10]" in page
    assert "compile 1" in page
    assert "2,000 in, 1,000 out" in page
    assert "0.0200" in page


def test_the_page_shows_what_was_steered(tmp_path):
    write_step(tmp_path / "2_1", 1, verdict("compile"))
    source, _ = read(tmp_path)
    Steering(tmp_path).add(Action.PAUSE)
    with RunRecords(tmp_path).lock():
        page = pages.overview_page(Shown((source.refresh(),)))
    assert re.search(r'class="steer">[-0-9T:+]+: pause', page)
    assert ">running<" in page


def test_a_refresh_reads_new_steps_alone(tmp_path):
    write_step(tmp_path / "2_1", 1, verdict("passed", 2.0))
    source, before = read(tmp_path)
    assert source.refresh() is before
    write_step(tmp_path / "2_1", 2, verdict("passed", 3.0))
    after = source.refresh()
    assert [node.step for node in after.tasks[0].nodes] == [1, 2]
    assert after.tasks[0].best.speedup == 3.0


def test_steps_that_were_set_aside_are_read_again(tmp_path):
    for step in (1, 2):
        write_step(tmp_path / "2_1", step, verdict("passed", 4.0 - step))
    source, _ = read(tmp_path)
    (tmp_path / "2_1" / "step_1_log.json").unlink()
    assert source.refresh().tasks[0].best.speedup == 2.0


def test_a_step_shows_context_flags_and_profile(tmp_path):
    task = tmp_path / "2_1"
    write_step(task, 1, verdict("passed", 1.5))
    flag = {"id": "background_threads", "severity": "suspect", "evidence": "two threads outlive the call"}
    found = verdict("passed", 2.0, integrity=["background_threads"], integrity_evidence=[flag])
    write_step(task, 2, found, parent=1, context=(1,))
    kernel = {"name": "add_kernel", "calls": 1, "us": 8.0, "share": 1.0, "own": True, "registers": 32}
    profile = {"kernels": [kernel], "gpu_us": 8.0, "wall_us": 9.0, "bytes": 64, "flops": 0, "roofline": 0.5,
               "bound": "memory", "hardware": "GPU"}  # fmt: skip
    (task / "step_2_profile.json").write_text(json.dumps(profile))
    page = step_page(tmp_path, "2_1", 2)
    assert 'href="/run/0/2_1/1">step 1' in page
    assert "two threads outlive the call" in page
    assert "look at the kernel before you believe" in page
    assert 'value="0.5"' in page
    assert "add_kernel" in page
    assert "2.000x, 95% interval 1.900 to 2.100" in page


def test_a_release_run_opens(tmp_path):
    task = tmp_path / "2_1"
    write_step(task, 0)
    write_step(task, 1, verdict("passed", 2.0))
    for step in (0, 1):
        log = json.loads((task / f"step_{step}_log.json").read_text())
        for key in ("outcome", "evaluated"):
            del log[key]
        (task / f"step_{step}_log.json").write_text(json.dumps(log))
    for name in ("step_1_usage.json", "step_1_exchanges.json"):
        (task / name).unlink()
    (task / "step_1_prompt.txt").write_text("the release's prompt")
    (task / "step_1_metrics.json").write_text(
        json.dumps({"compiled": True, "correctness": True, "metadata": {}, "runtime": 1.0,
                    "runtime_stats": {"fast_p": 2.5}})
    )  # fmt: skip
    page = step_page(tmp_path, "2_1", 1)
    assert "2.500x" in page
    assert "the release&#39;s prompt" in page


def trace(**changes: object) -> dict[str, object]:
    step = {"node_id": 1, "parent_node_id": 0, "context_node_ids": [], "created_by": "large_step",
            "score": {"compiled": True, "correct": True, "fast_p": 1.75}, "runtime_us": 2.0,
            "baseline_time_us": 3.5, "error": "", "code": "x = 1", "prompt": ""}  # fmt: skip
    return {"label": "L2 / 1", "reference_src": "y = 2", "steps": [step | changes]}


def test_packed_traces_open(tmp_path):
    (tmp_path / "2_1.json").write_text(json.dumps(trace()))
    assert "1.75" in step_page(tmp_path, "2_1", 1)
    assert "1.75" in step_page(tmp_path / "2_1.json", "2_1", 1)


@pytest.mark.parametrize("step", [0, -1, 12345678, 10**400])
def test_odd_step_numbers_are_drawn(tmp_path, step):
    (tmp_path / "2_1.json").write_text(json.dumps(trace(node_id=step, parent_node_id=step)))
    assert f'data-step="{step}"' in step_page(tmp_path, "2_1", step)


def test_a_damaged_trace_step_is_shown_as_unreadable(tmp_path):
    (tmp_path / "2_1.json").write_text(json.dumps(trace(score=None)))
    _, run = read(tmp_path)
    assert run.tasks[0].nodes[0].status == "unreadable"


@pytest.mark.skipif(not RECORDED.is_dir(), reason="needs recorded traces")
def test_recorded_traces_open():
    source, run = read(RECORDED)
    assert sum(len(task.nodes) for task in run.tasks) == 1364
    task = next(task for task in run.tasks if task.key == "kb-l2-p84-200")
    assert task.best.speedup == pytest.approx(22.43, abs=0.01)
    page = pages.task_page(run, 0, task, task.nodes[4], source.details(task.key, task.nodes[4].step))
    assert "Changes to the parent" in page


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("step_2_metrics.json", "{"),
        ("step_2_metrics.json", "[" * 100_000),
        ("step_2_metrics.json", '{"compiled": true, "correctness": true, "metadata": {"status": "passed"}, '
         '"runtime": "x", "runtime_stats": {"fast_p": "fast"}}'),
        ("step_2_log.json", '{"node_id": 2, "created_by": "nobody"}'),
        ("step_2_log.json", '{"node_id": 2, "depth": null}'),
        ("step_2_usage.json", '{"usd": "much"}'),
        ("step_2_metrics.json", "\xff\xfe"),
    ],
)  # fmt: skip
def test_a_broken_file_spoils_its_step_alone(tmp_path, name, content):
    for step in (1, 2, 3):
        write_step(tmp_path / "2_1", step, verdict("passed", 1.0 + step))
    (tmp_path / "2_1" / name).write_bytes(content.encode("latin-1"))
    _, run = read(tmp_path)
    statuses = {node.step: node.status for node in run.tasks[0].nodes}
    assert statuses == {1: "passed", 2: "unreadable", 3: "passed"}
    assert 'class="note"' in step_page(tmp_path, "2_1", 2)


def test_odd_numbers_and_names_are_drawn(tmp_path):
    task = tmp_path / "2_1"
    found = verdict("passed", 2.0)
    found["runtime_stats"] |= {"ci_low": -5, "ci_high": 1e300}
    write_step(task, 1, found, parent=1)
    write_step(task, 2, verdict("passed", 1e308), parent=10**30, kind="small_step")
    write_step(
        task, 3, verdict("passed", 1e-300), parent=2, code="\ud800".encode("utf-8", "replace").decode()
    )
    (task / "step_3_usage.json").write_text('{"usd": Infinity, "seconds": NaN, "output_tokens": 1e999}')
    page = step_page(tmp_path, "2_1", 3)
    assert page.count('class="node"') == 3
    _, run = read(tmp_path)
    assert "nan" not in pages.compare_page(Shown((run,))).split("<svg", 1)[1].lower().split("</svg>")[0]


def test_memory_counts_failures_with_and_without_a_rule(tmp_path):
    from skill_memory.rule import Rule

    error = "AttributeError: module 'triton.language' has no attribute 'tanh'"
    failed = verdict("compile", compilation_error=error)
    for key, rules, steps in (("2_1", ["Rule A"], "pfp"), ("2_2", [], "ffp"), ("2_3", ["Rule B"], "fp")):
        task = tmp_path / key
        for step, kind in enumerate(steps, 1):
            write_step(task, step, failed if kind == "f" else verdict("passed", 2.0), parent=1)
        (task / "rules.json").write_text(json.dumps(rules))
    _, run = read(tmp_path)
    kind = next(node.failure for node in run.tasks[0].nodes if node.failure)
    rule = Rule("Rule A", 3, signatures=(f"{kind} | a construct", "not a signature"))
    page = pages.memory_page(Shown((run,), (("memory.jsonl", (rule,)),)))
    assert "1 of 3 steps with the rule in their prompts, 3 of 5 without" in page
    assert "in their prompts" not in pages.memory_page(Shown((), (("memory.jsonl", (rule,)),)))


def test_compare_states_the_paired_ratio_with_interval():
    def run(name: str, speedups: list[float]) -> RunView:
        tasks = [
            TaskView(
                f"2_{i}",
                (Node(1, 0, None, (), "passed", Shape.PASSED, best := Best(1, True, speedup), best, None),),
            )
            for i, speedup in enumerate(speedups)
        ]
        return RunView(name, name, tuple(tasks))

    first, second, other = run("a", [1.0, 2.0, 4.0]), run("b", [2.0, 4.0, 8.0]), run("c", [])
    rows = pages.comparison([first, second, other])["rows"]
    assert [row[-1] for row in rows] == ["", "2.00x [2.00, 2.00], 3 tasks", "none"]
    uneven = pages.comparison([first, run("d", [1.0, 2.0, 40.0])])["rows"][1][-1]
    assert uneven == "1.36x [1.00, 2.50], 3 tasks"  # at most 10 counts: the cube root of 10 / 4


def test_a_link_is_not_followed(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("a password")
    run = tmp_path / "run"
    for step in (1, 2):
        write_step(run / "2_1", step, verdict("passed", 2.0))
    (run / "2_1" / "step_1.py").unlink()
    (run / "2_1" / "step_1.py").symlink_to(secret)
    os.mkfifo(run / "2_1" / "step_2_profile.json")
    source, view = read(run)
    text = export_page(Shown((view,)), [source])
    assert "a password" not in text
    assert "is not a plain file" in text


def test_a_linked_task_folder_is_not_followed(tmp_path):
    write_step(tmp_path / "other" / "2_1", 1, verdict("passed", 2.0))
    run = write_run(tmp_path / "run", 1, 1)
    (run / "2_9").symlink_to(tmp_path / "other" / "2_1")
    _, view = read(run)
    task = view.task("2_9")
    assert task is not None
    assert task.nodes == ()
    assert "link" in task.failure


def test_a_large_reply_is_cut_with_a_note(tmp_path):
    write_step(tmp_path / "2_1", 1, verdict("passed", 2.0), reply="<b>" * 3_500_000, code="x" * 10_000_000)
    page = step_page(tmp_path, "2_1", 1)
    assert len(page) < 3_000_000
    assert "more characters are in the run" in page
    assert "<b>" not in page


def test_the_export_names_no_foreign_address(tmp_path):
    source, view = read(write_run(tmp_path / "run", 1, 5))
    text = export_page(Shown((view,)), [source])
    assert set(re.findall(r"https?://[^\"'<) ]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text.replace("&#39;", "'")


def test_run_without_costs_has_no_dollar_curve(tmp_path):
    (tmp_path / "2_1.json").write_text(json.dumps(trace()))
    _, run = read(tmp_path)
    assert run_curve(run, Measure.DOLLARS).points == ()
    assert run_curve(run, Measure.STEPS).points == ((1.0, pytest.approx(1.75)),)


def test_a_judge_that_does_not_answer_is_named():
    assert judge_queue("http://127.0.0.1:9", None).startswith("Judge at http://127.0.0.1:9: no answer")


def test_the_judges_queue_is_on_the_overview():
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            good = self.path == "/queue/status" and self.headers["Authorization"] == "Bearer secret"
            self.send_response(200 if good else 401)
            self.end_headers()
            self.wfile.write(b'{"total_queued": 7, "total_processing": 2}')

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.handle_request).start()
        told = judge_queue(f"http://127.0.0.1:{server.server_port}/", "secret")
    assert told.endswith("7 waiting, 2 being judged")
    assert told in pages.overview_page(Shown((), queue=told))


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    with pytest.raises(RecordError):
        open_source(tmp_path)
    assert main(["view", str(tmp_path)]) == 2
    assert "save_path" in capsys.readouterr().err


def test_view_shows_all_runs_in_outputs_by_default(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["view", "--export", "out.html"]) == 2
    assert "no run is below outputs" in capsys.readouterr().err
    write_run(tmp_path / "outputs" / "mine", 1, 1)
    assert main(["view", "--export", "out.html"]) == 0
    assert "mine" in (tmp_path / "out.html").read_text()


def test_default_list_finds_deep_runs_despite_odd_folders(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    odd = tmp_path / "outputs" / "odd"
    odd.mkdir(parents=True)
    (odd / "config.yaml").write_text("level: 1\n")
    (odd / "step_1_metrics.json").write_text("{}")
    assert main(["view", "--export", "out.html"]) == 2
    write_run(tmp_path / "outputs" / "comparison" / "mine" / "seed-7", 1, 1)
    assert main(["view", "--export", "out.html"]) == 0
    assert "seed-7" in (tmp_path / "out.html").read_text()
    assert "outputs/odd is left out: outputs/odd is one task's folder" in caplog.text
    assert main(["view", "outputs/odd", "--export", "out.html"]) == 2


def test_tasks_that_were_not_begun_are_noted(tmp_path):
    run = write_run(tmp_path / "run", 2, 1)
    assert read_all([open_source(run)])[0].notes == ()
    begun = RunRecords(run).tasks()
    RunRecords(run).write_environment({"tasks": [*begun, "9_9"]})
    assert read_all([open_source(run)])[0].notes == (
        "1 of 3 tasks was not begun; the figures are of the others",
    )


def test_a_port_in_use_is_named(tmp_path, capsys):
    run = write_run(tmp_path / "run", 1, 1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["view", str(run), "--port", port]) == 2
    assert f"cannot use port {port}" in capsys.readouterr().err


def test_disappearing_memory_does_not_stop_updates(tmp_path):
    write_step(tmp_path / "2_1", 1, verdict("compile"))
    gone = threading.Event()

    def memory() -> tuple[()]:
        if gone.is_set():
            gone.clear()
            raise StorageError("the memory is gone")
        return ()

    watcher = Watcher([open_source(tmp_path)], memory)
    gone.set()
    watcher.start()
    write_step(tmp_path / "2_1", 2, verdict("compile"))
    until = time.monotonic() + 20
    while watcher.version == 0 and time.monotonic() < until:
        time.sleep(0.05)
    watcher.end()
    assert len(watcher.shown.runs[0].tasks[0].nodes) == 2


def test_unreadable_environment_is_a_note(tmp_path):
    run = write_run(tmp_path / "run", 1, 1)
    (run / "environment.json").write_text("{")
    _, view = read(run)
    assert "environment.json is damaged" in view.notes[0]
    assert len(view.tasks[0].nodes) == 1


def test_the_page_refuses_other_hosts_and_inline_scripts(tmp_path):
    client = pytest.importorskip("fastapi.testclient")
    from adaexplore.view.server import make_app

    source = open_source(write_run(tmp_path / "run", 1, 2))
    read_all([source])
    asked = client.TestClient(make_app(Watcher([source], tuple)), base_url="http://127.0.0.1")
    policy = asked.get("/").headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert asked.get("/run/0/2_1/2").status_code == 200
    assert [
        asked.get(path).status_code for path in ("/run/1/2_1", "/run/0/x", "/run/0/2_1/9", "/static/x")
    ] == [404] * 4
    assert asked.get("/", headers={"host": "evil.example"}).status_code == 400
    assert asked.post("/").status_code == 405


def test_the_memory_page_shows_evidence():
    from skill_memory.rule import Evidence, Rule, Verified

    rule = Rule("You cannot <b>", 3, evidence=(Evidence("run/2_1#1", "TypeError", "x[0]"),),
                verified=(Verified("3.7.1", "sm_90", True),), extra={"uplift": 0.25})  # fmt: skip
    page = pages.memory_page(Shown((), (("memory.jsonl", (rule,)),)))
    assert "You cannot &lt;b&gt;" in page
    assert all(words in page for words in ("TypeError", "Triton 3.7.1, sm_90", "holds", "0.25"))


@pytest.mark.parametrize("shape", Shape)
def test_every_shape_has_a_colour(shape: Shape) -> None:
    styles = (Path(pages.__file__).parent / "static" / "view.css").read_text(encoding="utf-8")
    assert re.search(rf"\.{shape}\b[^{{}}]*\{{color:", styles)
