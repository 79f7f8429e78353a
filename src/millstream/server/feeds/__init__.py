"""Feeds over HTTP: pages, follows, live additions, and records that are pending."""
