"""Before the first batch: recovering the store, and comparing it with the application."""
