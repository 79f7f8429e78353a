"""Conditions on an event's fields, for elements that users write: see `model.conditions`."""

from millstream.model.conditions import WORDS, Condition, Conditions, conditions

__all__ = ["WORDS", "Condition", "Conditions", "conditions"]
