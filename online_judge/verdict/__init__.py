"""Turn facts into a verdict; imports no torch."""
