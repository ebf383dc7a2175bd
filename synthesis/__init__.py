"""Synthesis of training tasks for the skill memory."""
