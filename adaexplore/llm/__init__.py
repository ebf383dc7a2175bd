"""Language-model clients behind one protocol."""
