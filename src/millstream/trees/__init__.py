"""The talk between root, parents and agents beside panes: news of a job, the shape of the tree.

Pure: no threads, no sockets, no clock. The server and the agent are shells around it, and so is a
simulation of thousands of nodes in one process (iMR, 2.2 and 3.3).

- `messages`: all messages
- `ranges`: sets of panes and windows
- `news_board`, `news_inquiry`: answers questions for the news of a job; asks them
- `tree_placement`, `free_seats`: the root's side: decides who is whose parent
- `tree_member`: an agent's side: says hello and passes orders on
"""
