"""From facts to a verdict; imports no torch."""
