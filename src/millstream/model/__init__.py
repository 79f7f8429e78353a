"""What an application is, as inert data: events, streams, functions, slates and their graph."""
