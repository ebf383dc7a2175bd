"""Settings shared by all tests."""

from hypothesis import settings

settings.register_profile("shared-machine", deadline=None, derandomize=True)
settings.load_profile("shared-machine")
