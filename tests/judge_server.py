"""A judge of the tests' own: scripted answers over real HTTP on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any] | str, dict[str, str]]

PASSED = {
    "success": True,
    "compiled": True,
    "correctness": True,
    "runtime": 1.0,
    "runtime_stats": {"mean": 1.0, "fast_p": 1.5},
    "metadata": {"status": "passed", "hardware": "test"},
    "execution_time": 0.1,
    "queue_time": 0.0,
    "error": None,
}
HEALTH = {
    "status": "healthy",
    "cuda_available": False,
    "judge_device": "cpu",
    "hardware": "CPU (test)",
    "versions": {"triton": "0"},
}


def failed(status: str, **metadata: Any) -> dict[str, Any]:
    """Return a verdict on a failing candidate."""
    found = {**PASSED, "correctness": False, "runtime": -1.0, "runtime_stats": {}}
    return found | {
        "compiled": status not in ("syntax", "load"),
        "metadata": {"status": status, **metadata},
    }


class JudgeServer:
    """``answer(path, body)`` decides; the default passes everything.

    Like the release's judge it knows no jobs, unless ``jobs`` decides about ``/v2/jobs...``: it gets
    method, path with query, body and the idempotency key. Nor does it state its ``environment`` or its
    ``workers``, unless they are given.
    """

    def __init__(
        self,
        answer: Callable[[str, dict[str, Any]], Answer] | None = None,
        *,
        jobs: Callable[[str, str, dict[str, Any], str | None], Answer] | None = None,
        environment: dict[str, Any] | None = None,
        workers: list[dict[str, Any]] | None = None,
        port: int = 0,
    ) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.authorizations: list[str | None] = []
        self.asked_for_environment = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/v2/jobs"):
                    self._job({})
                elif self.path == "/v2/environment":
                    outer.asked_for_environment += 1
                    self._reply(404 if environment is None else 200, environment or {}, {})
                elif self.path == "/v2/workers":
                    self._reply(200 if workers else 404, {"workers": workers or []}, {})
                else:
                    self._reply(200, HEALTH, {})

            def do_DELETE(self) -> None:
                self._job({})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/v2/jobs":
                    self._job(body)
                    return
                outer.requests.append((self.path, body))
                if answer is not None:
                    self._reply(*answer(self.path, body))
                elif self.path == "/v2/problem":
                    self._reply(200, {"ok": True, "device": "cpu", "hardware": "CPU (test)"}, {})
                else:
                    self._reply(200, PASSED, {})

            def _job(self, body: dict[str, Any]) -> None:
                if jobs is None:
                    outer.authorizations.pop()  # the request proper comes by v1
                    self._reply(404, {"detail": "Not Found"}, {})
                else:
                    self._reply(*jobs(self.command, self.path, body, self.headers["Idempotency-Key"]))

            def parse_request(self) -> bool:
                understood = super().parse_request()
                if understood:
                    outer.authorizations.append(self.headers["Authorization"])
                return understood

            def _reply(self, code: int, body: dict[str, Any] | str, headers: dict[str, str]) -> None:
                data = (body if isinstance(body, str) else json.dumps(body)).encode()
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> JudgeServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Be gone; may be called twice."""
        if not self._thread.is_alive():
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
