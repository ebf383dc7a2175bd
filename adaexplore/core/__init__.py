"""Types, wire contract, errors, random streams, text edits and atomic files; imports nothing above it."""
