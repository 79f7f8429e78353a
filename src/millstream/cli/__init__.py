"""The command `millstream`: one module a command. Spark is loaded only by those that run it."""
