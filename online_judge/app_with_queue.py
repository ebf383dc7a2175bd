"""The application under the name that earlier start commands use: ``online_judge.app_with_queue:app``."""

from online_judge.api.app import app

__all__ = ["app"]
