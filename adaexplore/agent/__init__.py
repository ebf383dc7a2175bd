"""One step of the agent: prompts, replies, source."""
