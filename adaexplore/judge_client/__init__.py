"""The judge as the agent sees it: an HTTP service, remote or started for the length of a run."""
