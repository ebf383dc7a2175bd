"""The trusted process of a slot: reference, hidden inputs, oracle, timing. It never runs candidate code."""
