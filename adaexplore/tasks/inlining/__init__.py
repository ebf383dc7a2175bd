"""Inline the source of packages into a problem, so that prompts show the computation and judges need no package.

Layers, from top: ``inline`` (the agent side, which starts a subprocess) > ``worker`` (that subprocess: the
only module here that imports torch and the user's packages) > ``closure`` > ``rewriting`` > ``modules``.
"""
