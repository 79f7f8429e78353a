"""Slates over HTTP: one, a page, a dump of all, and one as it changes."""
