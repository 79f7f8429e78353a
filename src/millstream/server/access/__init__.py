"""Access control: tokens and their grants, rate limits, addresses, the access log."""
