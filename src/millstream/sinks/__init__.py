"""Where events go: directories of files that a batch reaches whole, once."""
