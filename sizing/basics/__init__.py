"""Units, dtypes, problems in words: what every other room builds on."""
