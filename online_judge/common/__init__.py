"""Used on both sides of the trust boundary."""
