"""Dibs: a Slack bot for shared team queues, in which every task has at most one owner at a time."""
