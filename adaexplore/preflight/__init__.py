"""What can be said about a draft without a judge."""
