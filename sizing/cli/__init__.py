"""The command line, one file a command: the same inputs as the dashboard, and the same numbers."""
