"""Jobs over windows and their agents: scoreboards, news for agents, agents, their packages."""
