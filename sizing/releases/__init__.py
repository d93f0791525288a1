"""What each SGLang release does in its own way."""
