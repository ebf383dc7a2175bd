"""One device: its worker and slots, and each evaluation from claim to result."""
