"""Types, wire contract, errors, random streams, text edits, identity, atomic files; imports nothing above it."""
