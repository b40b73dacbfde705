"""The rules: what a task is and what may happen to it. No SQL, no Slack, no clock."""
