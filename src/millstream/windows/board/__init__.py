"""The scoreboard of a reducer: the panes of each node that have come, and the open windows."""
