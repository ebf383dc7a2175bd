"""Files: written whole or not at all, read with limits, growing line by line."""
