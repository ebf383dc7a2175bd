"""How fast a candidate is beside its reference."""
