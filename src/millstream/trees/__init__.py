"""What root, parents and agents exchange besides panes: news of a job, and the shape of the tree.

Pure: no threads, no sockets, no clock. The server and the agent are shells around it, and so is a
simulation of thousands of nodes in one process (iMR, 2.2 and 3.3).

- `messages`: all messages
- `ranges`: sets of panes and windows
- `news_board`: asks and answers questions for the news of a job
- `tree_placement`, `free_seats`: the root's side, which decides each agent's parent
- `tree_member`: an agent's side, which says hello and passes orders on
"""
