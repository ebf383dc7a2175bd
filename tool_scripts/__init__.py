"""Thin measurement and maintenance scripts on top of the packages."""
