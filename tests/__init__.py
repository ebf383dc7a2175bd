"""Tests; a package, so that they can share the model server."""
