"""Settings of a run, from flags, variables, TOML and code.

`settings` merges them, `setting_parts` has the fields, `setting_values` parses each value, and
`cluster_options` are those of a cluster.
"""
