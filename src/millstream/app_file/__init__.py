"""An application from a TOML file.

`app_file` reads it, `app_parts` makes its elements, jobs and feeds, and `app_sections` loads the
objects that its tables name.
"""
