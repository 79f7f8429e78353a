"""Reads of a feed: a query over the tables and the pending records, and the pages made of it."""
