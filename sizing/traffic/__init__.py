"""Real traffic instead of one L: traces, what their requests hold, and how many of them run."""
