"""The root of a reducer: merges panes into windows, closes them and gives their answers."""
