"""Published output: the sink of each address, and what happens while one fails."""
