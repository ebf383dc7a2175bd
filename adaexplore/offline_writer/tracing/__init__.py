"""Read a reference module: its names, and the values of its ``forward`` as a graph."""
