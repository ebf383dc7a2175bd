"""Triton's interpreter, completed."""
