"""The sources of events: addresses, file formats, and the log of a watched directory."""
