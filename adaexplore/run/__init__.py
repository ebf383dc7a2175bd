"""The loop that solves a task, batches of tasks, and how a configuration becomes their parts."""
