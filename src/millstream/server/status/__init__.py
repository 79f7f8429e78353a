"""What the application is doing: its status and history, metrics, and what needs attention."""
