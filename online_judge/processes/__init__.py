"""Start, feed and reap processes."""
