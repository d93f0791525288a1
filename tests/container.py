"""deploy/Containerfile, read: its instructions in order, and its steps done in a folder instead of an image."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FILE = ROOT / "deploy" / "Containerfile"


class Step(NamedTuple):
    """One instruction and what follows it, on one line."""

    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """The words of a list in brackets, or of a shell line."""
        return list(json.loads(self.rest)) if self.rest.startswith("[") else shlex.split(self.rest)


def steps() -> list[Step]:
    """Every instruction of the Containerfile."""
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [Step(*line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def only(name: str) -> Step:
    """The one instruction of that name."""
    (found,) = [step for step in steps() if step.name == name]
    return found


def install() -> Step:
    """The RUN that installs packages."""
    (found,) = [step for step in steps() if step.name == "RUN" and " pip install " in step.rest]
    return found


def health_command() -> list[str]:
    """What HEALTHCHECK runs."""
    _, _, command = only("HEALTHCHECK").rest.partition("CMD ")
    return Step("CMD", command).words


def environment() -> dict[str, str]:
    """What ENV sets."""
    return dict(word.split("=", 1) for step in steps() if step.name == "ENV" for word in step.words)


def build(folder: Path, around: dict[str, str]) -> None:
    """COPY and RUN every step into a folder, under the environment `around`; what installs packages is left out."""
    for step in steps():
        if step.name == "COPY":
            *sources, to = step.words
            for source in sources:
                _copy(ROOT / source, folder / to, into=to.endswith("/") or to == ".")
        elif step.name == "RUN" and step != install():
            subprocess.run(["sh", "-c", step.rest], cwd=folder, env=around, check=True)


def _copy(source: Path, to: Path, *, into: bool) -> None:
    if source.is_dir():
        shutil.copytree(source, to, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, to / source.name if into else to)


def inside(binaries: Path, home: Path) -> dict[str, str]:
    """The environment of a command in the image, with the interpreter of an environment and a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "STREAMLIT"))}
    return kept | environment() | {"PATH": f"{binaries}:{os.environ.get('PATH', '')}", "HOME": str(home)}
