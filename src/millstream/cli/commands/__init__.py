"""The commands of `millstream`, one module each."""
