"""The queue of jobs, the cache of known verdicts, and the journal that survives a crash."""
