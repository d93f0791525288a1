"""The version of this tool, for what is handed round."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PROJECT = "hybrid-pool-sizing"


def tool_version() -> str:
    """The installed package's version; in a clone that is not installed, the one that pyproject.toml states."""
    try:
        return version(PROJECT)
    except PackageNotFoundError:
        with (Path(__file__).parents[1] / "pyproject.toml").open("rb") as file:
            return str(tomllib.load(file)["project"]["version"])
