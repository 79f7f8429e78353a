"""The scoreboard of a reducer: which panes of which nodes have come, and what is open."""
