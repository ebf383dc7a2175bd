"""Pure search policies: no clock, no I/O, no client; every random generator is handed in."""
