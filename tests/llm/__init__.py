"""Tests of the language-model clients."""
