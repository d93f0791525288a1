"""`dashboard`: the pages in a browser, from any folder."""

import argparse
from pathlib import Path
from typing import Any

INSTALLED = Path(__file__).parents[1] / "dashboard" / "app.py"
CLONE = Path(__file__).parents[2] / "app.py"


def add(commands: Any) -> None:
    """Declare the command."""
    dashboard = commands.add_parser(
        "dashboard",
        usage="python -m sizing dashboard [-h] [options of streamlit run]",
        help="open the dashboard in a browser",
        description="Start the dashboard and print its address; Ctrl+C ends it. Every option of `streamlit run` may "
        "follow, for instance --server.port 8600. It answers to this machine alone; to host it add "
        "--server.address 0.0.0.0 --server.allowedHosts NAME, with the name that readers type.",
    )
    dashboard.set_defaults(run=run, streamlit=[])


def run(options: argparse.Namespace) -> int:
    """Start Streamlit in this process, with its own options; it ends the process with its own exit status."""
    from streamlit.web import cli  # the one command that needs it

    cli.main(["run", str(app_file()), *options.streamlit], prog_name="streamlit")
    return 0


def app_file() -> Path:
    """The first page: inside this package where it is installed, else at the top of the clone.

    Its folder holds the pages and .streamlit/config.toml too: Streamlit imports from there, and takes its settings.
    """
    return INSTALLED if INSTALLED.exists() else CLONE
