"""The OpenAPI document: the document itself, and the operations of each group of routes."""
