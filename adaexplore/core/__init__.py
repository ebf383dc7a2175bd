"""Types, wire contract, errors, random streams, edits, identity, atomic files; imports nothing above it."""
