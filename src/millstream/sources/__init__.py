"""Where events come from: addresses, file formats, and the log of a watched directory."""
