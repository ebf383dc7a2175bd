"""Adapt: learn one-line rules from failures; every prompt for a kernel shows them."""
