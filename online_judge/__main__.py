"""``python -m online_judge``: serve the judge, on a free port if asked for port 0."""

import argparse
import contextlib
import gc
import json
import logging
import os
import signal
import socket
import sys
from types import FrameType

import uvicorn

from adaexplore.core.errors import AdaExploreError, ConfigError, JudgeError
from online_judge.api.app import app
from online_judge.api.auth import TOKEN_VARIABLE, is_loopback
from online_judge.api.connections import PunctualProtocol, allow_many_files
from online_judge.common.events import TEXT_FORMAT, JsonFormatter
from online_judge.queue.store import remove_unused
from online_judge.sandbox import linux
from online_judge.scale import restarts
from online_judge.settings import Settings, bind_address, default_state_file

log = logging.getLogger(__name__)

_GRACE_S = 2
_INTERRUPTED = 130


class _Server(uvicorn.Server):
    """A server that announces when it is ready and ends with its parent."""

    def __init__(
        self, config: uvicorn.Config, host: str, port: int, announce: int | None, parent: int | None
    ) -> None:
        super().__init__(config)
        self._host, self.port, self._announce, self._parent = host, port, announce, parent
        self.interrupted = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.interrupted |= sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.freeze()  # these objects stay: later collections skip them and delay requests less
        if self.started and self._announce is not None:
            with open(self._announce, "w", encoding="utf-8") as pipe:
                json.dump({"port": self.port, "pid": os.getpid()}, pipe)
        elif self.started:
            host = f"[{self._host}]" if ":" in self._host else self._host
            print(f"Judge: http://{host}:{self.port}", flush=True)  # noqa: T201

    async def on_tick(self, counter: int) -> bool:
        if self._parent is not None and os.getppid() != self._parent:
            log.warning("the parent process is gone: the judge ends")
            return True
        return _lost_ray() or await super().on_tick(counter)


def _lost_ray() -> bool:
    judge = getattr(app.state, "judge", None)
    return judge is not None and judge.fleet is not None and judge.fleet.lost


def main(argv: list[str] | None = None) -> int:
    linux.forbid_inspection()
    parent = os.getppid()
    parser = argparse.ArgumentParser(prog="python -m online_judge", description=__doc__)
    parser.add_argument("--host", help="address to listen on (HOST, else 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port, 0 for a free one (PORT, else 12017)")
    parser.add_argument("--announce", type=int, help='descriptor that gets {"port": N, "pid": N} when ready')
    parser.add_argument("--die-with-parent", action="store_true", help="end when the starting process ends")
    parser.add_argument(
        "--ray", nargs="?", const="auto", metavar="ADDRESS", help="use a Ray cluster's devices (JUDGE_RAY)"
    )
    options = parser.parse_args(argv)
    if options.ray is not None:
        os.environ["JUDGE_RAY"] = options.ray
    debug = os.environ.get("DEBUG", "").lower() == "true"
    levels, asked = uvicorn.config.LOG_LEVELS, os.environ.get("LOG_LEVEL") or "info"
    level = "debug" if debug else asked.lower() if asked.lower() in levels else "info"
    log_format = os.environ.get("LOG_FORMAT") or "text"
    as_json = log_format.lower() == "json"
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if as_json else logging.Formatter(TEXT_FORMAT))
    logging.basicConfig(level=levels[level], handlers=[handler])
    if asked.lower() not in levels:
        log.warning("LOG_LEVEL=%s is unknown, it is info; choose among: %s", asked, ", ".join(levels))
    if log_format.lower() not in ("json", "text"):
        log.warning("LOG_FORMAT=%s is unknown, it is text; choose json or text", log_format)
    allow_many_files()
    try:
        settings = Settings.from_environment()  # report mistakes in one line, before anything starts
        host, port = bind_address()
        host = options.host or host
        port = port if options.port is None else options.port
        if not 0 <= port <= 65535:
            raise ConfigError(f"--port is {port}; set it to 0..65535")
        if settings.token is None and not settings.clients and not is_loopback(host):
            raise ConfigError(
                f"{host} can be reached from other machines: set {TOKEN_VARIABLE}, or use --host 127.0.0.1"
            )
        if port:  # a port chosen anew at each start would not find its state again
            state = default_state_file(port)
            if os.environ.setdefault("JUDGE_STATE", str(state)) == str(state):
                remove_unused(state.parent, keep=state)
        if debug and port:
            http = PunctualProtocol
            uvicorn.run("online_judge:app", host=host, port=port, http=http, log_level=level, reload=True)
            return 0
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((host, port))
            except OSError as error:
                text = f"cannot listen on {host}:{port} ({error}); choose another --port"
                raise AdaExploreError(text) from error
            config = uvicorn.Config(
                "online_judge:app",
                http=PunctualProtocol,
                log_level=level,
                log_config=None if as_json else uvicorn.config.LOGGING_CONFIG,
                timeout_graceful_shutdown=_GRACE_S,
            )
            followed = parent if options.die_with_parent else None

            def serve(announce: int | None, followed: int | None) -> int:
                server = _Server(config, host, listener.getsockname()[1], announce, followed)
                with contextlib.suppress(SystemExit):  # uvicorn's own exit after a failed start
                    server.run(sockets=[listener])
                if _lost_ray():
                    return restarts.LOST
                if server.interrupted:  # usually a KeyboardInterrupt, but uvicorn may swallow it
                    return _INTERRUPTED
                return 0 if server.started else getattr(app.state.failure, "exit_code", JudgeError.exit_code)

            if settings.ray is None:
                return serve(options.announce, followed)
            return restarts.in_children(serve, options.announce, followed)
    except AdaExploreError as error:
        log.error("%s", error)
        return error.exit_code
    except KeyboardInterrupt:  # uvicorn has shut the judge down in order
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
