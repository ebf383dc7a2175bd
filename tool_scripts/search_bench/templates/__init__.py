"""Parametric Triton kernels of five families: structures times numbers, some of which fail."""
