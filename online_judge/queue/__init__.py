"""What runs next, what is known already, what survives a crash."""
