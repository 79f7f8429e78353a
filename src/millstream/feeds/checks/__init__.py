"""Checks of stored feeds: the tables agree, and a feed has all posts that it must have."""
