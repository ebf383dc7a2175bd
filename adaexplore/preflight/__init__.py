"""Checks without a judge: lints that find drafts which cannot work."""
