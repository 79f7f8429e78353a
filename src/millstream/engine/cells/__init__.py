"""One function in one shard during one batch: its events, slates, timers and limits."""
