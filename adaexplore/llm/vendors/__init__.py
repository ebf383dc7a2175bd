"""One module per vendor: its client."""
