"""An agent as a member of a tree: its seat, and merging the panes of its children."""
