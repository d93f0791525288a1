"""Launch commands of SGLang: to a Scenario's inputs, and back with other sizing flags and nothing else changed."""

from sizing.command.flags import SIZING_FLAGS
from sizing.command.reading import Command, Flag, read_command
from sizing.command.writing import rewritten

__all__ = ["SIZING_FLAGS", "Command", "Flag", "read_command", "rewritten"]
