"""Convert tasks of other benchmarks to ordinary problem files and candidates; text only, no torch."""
