"""The state of the application: its status and history, metrics, and conditions that need
attention."""
