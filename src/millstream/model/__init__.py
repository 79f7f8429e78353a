"""The definition of an application as inert data: events, streams, functions, slates, the graph."""
