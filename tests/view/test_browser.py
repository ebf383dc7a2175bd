"""The page in a browser: what a person sees, does and hears."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from tests.view.runs import verdict, write_run, write_step, write_task

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "first", 2, 30)


@pytest.fixture(scope="module")
def address(run, serve) -> str:
    """Serve the run, with a memory."""
    return serve(run, "--memory", Path(__file__).parents[2] / "results/memory/general_memory_v1.jsonl")


@pytest.fixture(scope="module")
def exported(run) -> str:
    out = run.parent / "out.html"
    assert main(["view", str(run), "--export", str(out)]) == 0
    return out.as_uri()


def first_paints(page, address: str) -> list[float]:
    """Load the page three times; return the seconds from navigation to first contentful paint of each."""
    script = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)"
    paints = []
    for _ in range(3):
        page.goto(address)
        while not (found := page.evaluate(script)):
            page.wait_for_timeout(20)
        paints.append(found[0] / 1000)
    return paints


def renderer_memory(browser) -> float:
    """Return the resident memory of the largest page process, in MiB."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    pages = [
        Path(f"/proc/{item['id']}/statm").read_text() for item in processes if item["type"] == "renderer"
    ]
    return max(int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") for text in pages) / 2**20


def shown_nodes(page) -> int:
    return page.locator(".task:visible .node:visible").count()


def test_a_new_step_appears_within_two_seconds(tmp_path, serve, page):
    run = write_run(tmp_path / "live", 1, 3)
    page.goto(serve(run) + "/run/0/2_1")
    assert shown_nodes(page) == 3
    took = []
    for step in (4, 5, 6):
        began = time.monotonic()
        write_step(run / "2_1", step, verdict("passed", 3.25 + step), parent=1)
        page.wait_for_selector(f".node[data-step='{step}']", timeout=10_000)
        took.append(time.monotonic() - began)
        assert f"{3.25 + step:.2f}x" in page.inner_text("#live")
    assert min(took) < 2, took  # other tests may hold the cores for some seconds


def test_a_new_task_appears_on_the_overview(tmp_path, serve, page):
    run = write_run(tmp_path / "live", 1, 2)
    page.goto(serve(run))
    write_task(run, "2_7", 2)
    page.wait_for_selector("text=2_7", timeout=10_000)


def test_a_node_opens_with_code_and_differences(address, page):
    page.goto(address + "/run/0/2_1")
    page.click(".node[data-step='2'] a")
    page.wait_for_selector("#panel >> text=kernel_2")
    panel = page.inner_text("#panel")
    assert "Changes to the parent" in panel
    page.click("summary:has-text('Changes to the reference')")
    assert page.locator("#panel details[open] .add").first.is_visible()
    assert "Reply, large" in panel
    assert page.locator("#panel .note").count() == 0
    assert page.url.endswith("/run/0/2_1/2")


def test_the_open_node_survives_live_news(tmp_path, serve, page):
    run = write_run(tmp_path / "live", 1, 3)
    page.goto(serve(run) + "/run/0/2_1")
    page.click(".node[data-step='2'] a")
    page.wait_for_selector("#panel >> text=kernel_2")
    page.locator(".time").fill("2")
    write_step(run / "2_1", 4, verdict("compile"), parent=1)
    page.wait_for_selector(".node[data-step='4']", state="attached", timeout=10_000)
    assert "kernel_2" in page.inner_text("#panel")
    assert page.locator(".time").input_value() == "2"
    assert page.locator(".node.chosen").get_attribute("data-step") == "2"


@pytest.mark.parametrize("where", ["live", "file"])
def test_the_slider_goes_back_in_time(address, exported, page, where):
    page.goto(address + "/run/0/2_1" if where == "live" else f"{exported}#r0-t0")
    assert shown_nodes(page) == 30
    page.locator(".time:visible").fill("10")
    assert shown_nodes(page) == 10
    assert "step 10" in page.inner_text(".when:visible")
    page.locator(".time:visible").fill("30")
    assert shown_nodes(page) == 30


def test_keys_move_fold_and_open(address, page):
    page.goto(address + "/run/0/2_1")
    page.locator(".node a[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    step = page.evaluate("document.activeElement.closest('.node').dataset.step")
    assert step == "1"
    page.keyboard.press(" ")
    assert shown_nodes(page) < 30
    page.keyboard.press(" ")
    assert shown_nodes(page) == 30
    width = page.locator(".tree svg").bounding_box()["width"]
    page.keyboard.press("+")
    assert page.locator(".tree svg").bounding_box()["width"] > width
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel >> text=kernel_1")


def test_tab_reaches_the_tree_once(address, page):
    page.goto(address + "/run/0/2_1")
    assert page.locator(".node a[tabindex='0']").count() == 1


def test_compare_draws_a_line_for_each_run(run, tmp_path, serve, page):
    second = write_run(tmp_path / "second", 2, 20)
    page.goto(serve(run, second) + "/compare")
    assert page.locator("svg").count() == 3  # steps, dollars, seconds
    assert {"first", "second"} <= set(page.locator("tbody th").all_inner_texts())


def test_the_exported_file_works_from_disk(exported, page):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(exported)
    page.click("text=2_2")
    page.locator(".task:visible .node[data-step='3'] a").click()
    assert page.locator(".panel:visible").count() == 1
    assert "kernel_3" in page.locator(".panel:visible").inner_text()
    page.click("nav >> text=Compare")
    assert page.locator(".chart:visible").count() == 3
    assert all(url.startswith(("file:", "data:")) for url in asked)


@pytest.mark.parametrize("path", ["/", "/run/0/2_1/3", "/compare"])
def test_a_narrow_screen_does_not_scroll_sideways(address, page, path):
    page.set_viewport_size({"width": 375, "height": 700})
    page.goto(address + path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/run/0/2_1/3", "/compare", "/memory", "file"])
def test_axe_finds_nothing_serious(address, exported, page, path, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=scheme)
    if path == "file":
        page.goto(f"{exported}#r0-t0-n3")
    else:
        page.goto(address + path)
    found = axe.Axe().run(page).response["violations"]
    told = [
        (item["id"], item["nodes"][0]["html"]) for item in found if item["impact"] in ("serious", "critical")
    ]
    assert told == []


def test_hostile_text_is_shown_and_not_executed(tmp_path, serve, page):
    evil = (
        "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script></pre></title>"
    )
    run = write_run(tmp_path / "<b>run<script>alert(1)<", 1, 1)
    metadata = {"feedback": evil, "integrity": [evil], "tier": evil}
    write_step(run / "2_1", 2, verdict("passed", 2.0, **metadata), code=evil, reply=evil)
    run.joinpath("9_<script>document.title='owned'<").mkdir()
    write_step(run / "9_<script>document.title='owned'<", 1, verdict("compile", feedback=evil))
    out = tmp_path / "out.html"
    assert main(["view", str(run), "--export", str(out)]) == 0
    address = serve(run)
    for url in (
        address,
        address + "/run/0/2_1/2",
        address + "/compare",
        out.as_uri(),
        out.as_uri() + "#r0-t0-n2",
    ):
        page.goto(url)
        page.wait_for_timeout(100)
        assert "owned" not in page.title()
        assert page.locator("img").count() == 0
    assert evil in page.locator(".panel:visible").inner_text()


def test_two_hundred_steps_paint_within_a_second(tmp_path, serve, browser, page):
    run = write_run(tmp_path / "long", 1, 200)
    painted = first_paints(page, serve(run) + "/run/0/2_1")
    page.wait_for_function("document.querySelectorAll('.node').length === 200", timeout=30_000)
    used = renderer_memory(browser)
    print(f"200 steps: first paints {painted} s, {used:.0f} MiB")  # noqa: T201
    assert shown_nodes(page) == 200
    assert min(painted) <= 1, painted  # other tests may hold the cores for some seconds
    assert used <= 300


@pytest.mark.timeout(600)
@pytest.mark.parametrize("steps", [10, pytest.param(200, marks=pytest.mark.long)])
def test_a_hundred_tasks_paint_within_two_seconds(tmp_path, serve, browser, page, steps):
    address = serve(write_run(tmp_path / "large", 100, steps))
    began = time.monotonic()
    early = first_paints(page, address)
    page.wait_for_selector(f"text={100 * steps}", timeout=120_000)
    complete = time.monotonic() - began
    late = first_paints(page, address)
    used = renderer_memory(browser)
    print(f"100 x {steps}: {early}, all {complete:.1f} s, then {late} s, {used:.0f} MiB")  # noqa: T201
    assert max(min(early), min(late)) <= 2, (early, late)
    assert used <= 300
