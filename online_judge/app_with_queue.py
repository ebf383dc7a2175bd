"""The application under the name of earlier start commands: ``online_judge.app_with_queue:app``."""

from online_judge.api.app import app

__all__ = ["app"]
