"""Checks of outputs, and of what calls do to inputs and memory."""
