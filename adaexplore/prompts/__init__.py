"""Prompt templates and their strict rendering."""
