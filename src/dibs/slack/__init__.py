"""How Slack sees Dibs: payloads in, cards, modals and answers out. No SQL, no rules."""
