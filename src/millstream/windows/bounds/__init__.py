"""Answers with bounds: what the answer of a window would be if nothing had been lost."""
