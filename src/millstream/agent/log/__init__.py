"""The files of a log, as they grow and are rotated, and the lines and times in them."""
