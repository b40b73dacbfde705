"""One module for each kind of payload that Slack sends."""
