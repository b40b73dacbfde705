"""Pure functions from a task and its facts to Block Kit."""
