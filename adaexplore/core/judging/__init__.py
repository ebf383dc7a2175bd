"""Parts of what a judge answers: flags, workloads, profiles, recorded times."""
