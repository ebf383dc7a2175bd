"""The parts of ``tool_scripts/bench_judge.py``."""
