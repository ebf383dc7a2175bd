"""Numbers and tables from records; records are only read."""
