"""Figures that a judge measured: by workload, and times of references that are recorded."""
