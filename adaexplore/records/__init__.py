"""The run directory: file names, atomic writer, reader. No other package knows file names."""
