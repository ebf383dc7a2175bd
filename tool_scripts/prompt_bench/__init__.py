"""Parts of ``tool_scripts/bench_prompts.py``."""
