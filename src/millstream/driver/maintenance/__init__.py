"""Rewrites of a whole store while no run uses it."""
