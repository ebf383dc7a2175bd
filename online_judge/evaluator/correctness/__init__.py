"""Decide whether outputs are right, and how precise they are."""
