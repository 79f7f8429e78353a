"""Streams over HTTP: sending events to the logs, and reading their records."""
