"""Whether outputs are right, and how precise."""
