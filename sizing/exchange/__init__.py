"""Scenarios and results in and out: links, files, exports."""
