"""Kinds of baselines, one in each file: how a reference runs when it is timed."""
