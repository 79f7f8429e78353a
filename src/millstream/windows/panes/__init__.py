"""Panes and the messages that carry them: making, ordering, giving up, accepting once."""
