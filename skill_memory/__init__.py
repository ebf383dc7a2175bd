"""Adapt: what failures taught, as one-line rules that go into every proposal prompt."""
