"""Answers in words: verdict, working, flags, tables."""
