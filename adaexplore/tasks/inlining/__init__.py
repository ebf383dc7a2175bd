"""Inline the source of packages into a problem: prompts show the computation, judges need no package.

Layers, from top: ``inline`` (the agent side, which starts a subprocess) > ``worker`` (that subprocess: the
only module here that imports torch and the user's packages) > ``closure`` > ``rewriting`` > ``modules``.
"""
