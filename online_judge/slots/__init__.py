"""One device: its slots, its leases, and an evaluation from claim to result."""
