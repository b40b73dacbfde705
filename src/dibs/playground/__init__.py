"""A stand-in for Slack on this machine: a page to press buttons in, and the tests' double."""
