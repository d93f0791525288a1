"""A long run of every harness with fresh random examples: python tests/fuzz/long.py [--examples 200000]."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200_000, help="of each harness (200000)")
    options = parser.parse_args()
    here = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", str(here / "test_fuzz.py")]
    environment = {**os.environ, "FUZZ_EXAMPLES": str(options.examples)}
    sys.exit(subprocess.run(command, check=False, cwd=here.parents[1], env=environment).returncode)
