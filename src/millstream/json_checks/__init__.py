"""Checks of JSON text, the same at every entrance.

json_depth      the limit on the nesting of values
skipped_fields  blocks of lines of which a decoder may skip fields
"""
