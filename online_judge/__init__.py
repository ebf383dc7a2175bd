"""The judge: ``uvicorn online_judge:app`` serves it; importing this starts nothing and needs no torch."""

from typing import Any

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    """Give ``app`` on first use, so that the other modules import without the web framework."""
    if name == "app":
        from online_judge.api.app import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
