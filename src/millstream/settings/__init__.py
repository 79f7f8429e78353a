"""Settings of a run, from flags, variables, TOML and code."""
