"""The run directory: its names, its atomic writer, its reader. Nothing else knows file names."""
