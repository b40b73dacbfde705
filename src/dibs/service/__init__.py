"""What Dibs does: one call, one transaction, one Outcome. No Slack words."""
