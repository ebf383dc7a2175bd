"""Build a sandbox around a process, and read back what is in force."""
