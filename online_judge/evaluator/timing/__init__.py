"""Time a candidate beside its reference."""
