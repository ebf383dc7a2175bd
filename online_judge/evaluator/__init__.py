"""The trusted process of a slot: reference, hidden inputs, oracle, timing. Never runs candidate code."""
