"""``adaexplore view``: show runs on a local web page, or write them to one HTML file."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from adaexplore.cli.options import need_packages
from adaexplore.core.errors import UsageError
from adaexplore.core.files.atomic import write_text
from adaexplore.settings.environment import read_environment

if TYPE_CHECKING:
    from adaexplore.view.sources import Watcher


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="*",
        type=Path,
        metavar="RUN",
        help="run directory, packed trace, or folder of packed traces (default: all runs below outputs)",
    )
    parser.add_argument(
        "--port", type=int, default=8765, help="port on 127.0.0.1 (default: 8765; 0: any free)"
    )
    parser.add_argument("--export", type=Path, metavar="FILE", help="write one HTML file instead of serving")
    parser.add_argument(
        "--memory",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="skill memory to show on the page",
    )
    parser.add_argument("--judge", metavar="URL", help="judge whose queue the page shows")


def run(args: argparse.Namespace) -> int:
    """Serve until ctrl-C, or write the file."""
    server = () if args.export else ("fastapi", "uvicorn")
    need_packages("the view", "view", "jinja2", "pygments", *server)
    from adaexplore.view.pages import Memory, Shown
    from adaexplore.view.sources import Watcher, default_sources, judge_queue, open_source, read_all
    from skill_memory.store import read_rules

    named = [open_source(path) for path in args.runs]
    sources = named or default_sources(Path("outputs"))

    def memory() -> Memory:
        return tuple((str(path), tuple(read_rules(path))) for path in args.memory)

    def queue() -> str:
        return "" if args.judge is None else judge_queue(args.judge, read_environment(os.environ).judge_token)

    if args.export is not None:
        from adaexplore.view.export import export_page

        page = export_page(Shown(read_all(sources), memory()), sources)
        write_text(args.export, page.encode("utf-8", "replace").decode("utf-8"))
        print(f"{args.export}: {len(page) / 1e6:.1f} MB")  # noqa: T201
        return 0
    _serve(Watcher(sources, memory, queue), args.port)
    return 0


def _serve(watcher: Watcher, port: int) -> None:
    import uvicorn

    from adaexplore.view.server import make_app

    with contextlib.closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot use port {port} ({error}); choose another --port, or 0") from error
        watcher.start()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/ (ctrl-C ends it)", flush=True)  # noqa: T201
        config = uvicorn.Config(make_app(watcher), log_level="warning", timeout_graceful_shutdown=1)
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])
        watcher.end()
