"""The application under the name that earlier start commands use: ``online_judge.app_with_queue:app``."""

from online_judge.gateway import app

__all__ = ["app"]
