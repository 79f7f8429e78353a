"""Checks of stored feeds: that the tables agree, and that a feed has all of its posts."""
