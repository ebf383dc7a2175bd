"""What a model's reply holds: the answer outside its reasoning, fenced blocks, programs, edits."""
