"""The agent's client of the judge: an HTTP service, remote or started for one run."""
