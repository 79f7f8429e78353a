"""An application from a TOML file."""
