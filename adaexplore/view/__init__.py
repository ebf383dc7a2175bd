"""The local page of runs, and figures of them."""
