"""What a user states, and what a model fills in."""
