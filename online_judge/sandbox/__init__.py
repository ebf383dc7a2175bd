"""Build a sandbox around a process, and read back its parts in force."""
