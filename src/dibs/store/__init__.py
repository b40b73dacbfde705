"""What PostgreSQL keeps and decides. No rules of its own, no Slack."""
