"""How the modules of `sizing/` hang together: modules, packages, arrows, circles, and how far arrows reach.

An arrow is one module importing another of `sizing/`, counted once, imports inside functions included; a circle is a
set of modules of which each reaches every other. The exit code is 1 where there is a circle. To compare, name folders
of other checkouts, or revisions of this one.

    python tests/bench/structure.py [folder or revision ...]
"""

import ast
import io
import subprocess
import sys
import tarfile
import tempfile
from contextlib import ExitStack
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]


def modules_of(root: Path) -> dict[str, Path]:
    """Every module of `sizing/` by its dotted name."""
    found = {}
    for path in sorted((root / "sizing").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that one file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= whole & known.keys() or {node.module}
    return names & known.keys()


def room(module: str) -> str:
    """The package of a module below `sizing/`, or the module itself at the top."""
    return ".".join(module.split(".")[:2])


def acyclic(arrows: dict[str, set[str]]) -> bool:
    """Whether no arrow leads back."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError:
        return False
    return True


def checkout(name: str, folders: ExitStack) -> Path:
    """The folder of that name, or one with the core as it was in that revision."""
    if Path(name).is_dir():
        return Path(name)
    packed = subprocess.run(["git", "archive", name, "sizing"], cwd=HERE, check=True, capture_output=True).stdout
    folder = Path(folders.enter_context(tempfile.TemporaryDirectory()))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def main() -> int:
    """Print one row a checkout."""
    with ExitStack() as folders:
        return measured({name: checkout(name, folders) for name in sys.argv[1:] or [str(HERE)]})


def measured(roots: dict[str, Path]) -> int:
    """The table; 1 where there is a circle, else 0."""
    heads = f"{'modules':>9}{'at top':>8}{'packages':>10}{'arrows':>8}{'between rooms':>15}{'circles':>9}"
    print(f"{'checkout':32}{heads}")
    good = True
    for said, root in roots.items():
        known = modules_of(root)
        arrows = {name: imported(path, known) - {name} for name, path in known.items()}
        rooms = {(room(a), room(b)) for a, targets in arrows.items() for b in targets if room(a) != room(b)}
        top = sum(name.count(".") == 1 and path.stem != "__init__" for name, path in known.items())
        packages = sum(path.stem == "__init__" for path in known.values())
        whole = acyclic(arrows)
        good &= whole
        print(
            f"{said[-31:]:32}{len(known):>9}{top:>8}{packages:>10}{sum(map(len, arrows.values())):>8}"
            f"{len(rooms):>15}{'none' if whole else 'some':>9}"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
