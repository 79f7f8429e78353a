"""The standard elements, each in its own module, and what several of them share."""
