"""Types, wire contract, errors, random streams, edits, identity, atomic files; the lowest layer."""
