"""Settings: one validated model, YAML files with overrides, environment variables."""
