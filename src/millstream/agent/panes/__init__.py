"""From lines to panes: which panes are made, when, and where an agent resumes."""
