"""Columns, for sources, for the engine and for updates across keys.

arrow_arrays    from lists to arrays of NumPy and Arrow, and back
line_layout     JSON lines of one layout, read and written as columns
picked_fields   the fields that are picked of records where they are read
"""
