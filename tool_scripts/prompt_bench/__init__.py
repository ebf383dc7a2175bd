"""What the prompts of a search cost."""
