"""Source text: blocks, edits, differences, identity, tunables."""
