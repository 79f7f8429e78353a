"""What the root, parents and agents agree on beside panes: news of a job, and who is whose parent.

Pure: no threads, no sockets, no clock. The server and the agent are shells around it, and so is
whoever simulates thousands of nodes in one process (iMR, 2.2 and 3.3).

- `messages`: all that travels
- `ranges`: sets of panes and windows
- `news_board`, `news_inquiry`: whoever answers for the news of a job, and whoever asks
- `tree_placement`, `free_seats`: the root, which says who is whose parent
- `tree_member`: an agent, which says hello and passes on
"""
