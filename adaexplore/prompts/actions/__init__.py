"""Step actions, one in each file: what a kind of step asks the model."""
