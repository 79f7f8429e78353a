"""From an agent to its root or parent: the outbox, the HTTP client, and when to retry."""
