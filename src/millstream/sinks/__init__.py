"""Where events go: files, logs and tables that a batch reaches whole, once."""
