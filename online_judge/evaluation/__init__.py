"""What referee and player do with tensors: share, run, compare, time, classify and explain."""
