"""Answers with bounds: what a window would say if nothing had been lost."""
