"""The house rules, each one a test."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from sizing.releases.rules import LATEST, RELEASES

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-test.lock")
SET_UP = "python3 -m venv .venv && .venv/bin/pip install -q -r "
START = SET_UP + "requirements.lock && .venv/bin/streamlit run app.py"
TEST = SET_UP + "requirements-test.lock && .venv/bin/python -m pytest"


def run(*command: str) -> str:
    """What the command prints; a failure shows all of it."""
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pins(lock: str) -> dict[str, list[Requirement]]:
    """A lock file's pins by package; there are two where Python versions differ."""
    found: dict[str, list[Requirement]] = {}
    for line in re.findall(r"^(\w.*==.*?) \\$", (ROOT / lock).read_text(), re.MULTILINE):
        pin = Requirement(line)
        found.setdefault(pin.name, []).append(pin)
    return found


def public_definitions() -> Iterator[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef]]:
    """The core's modules, and the classes and functions in them that have a public name."""
    for path in sorted((ROOT / "sizing").rglob("*.py")):
        module = ast.parse(path.read_text())
        yield f"{path.relative_to(ROOT)}", module
        for node in module.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                if any(isinstance(name, ast.Name) and name.id == "overload" for name in node.decorator_list):
                    continue  # its words are those of the function it overloads
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


def test_core_needs_no_interface() -> None:
    """Every module of the core imports without Streamlit and Plotly, and without pandas, which takes long to import."""
    run(
        sys.executable,
        "-c",
        "import pkgutil, sys, sizing\n"
        "names = [m.name for m in pkgutil.walk_packages(sizing.__path__, 'sizing.')]\n"
        "assert names, 'no module found'\n"
        "for name in names: __import__(name)\n"
        "assert not {'streamlit', 'plotly', 'pandas'} & set(sys.modules)",
    )


def test_public_names_are_documented() -> None:
    """Every module, class and function of the core that others may use says what it is."""
    definitions = dict(public_definitions())
    assert definitions
    assert [where for where, node in definitions.items() if not ast.get_docstring(node)] == []


def is_slots_per_request(side: ast.expr) -> bool:
    """Whether a side of a sum is S, `rank.S` or `int(rank.S)`."""
    inner = side.args[0] if isinstance(side, ast.Call) and side.args else side
    return getattr(inner, "id", getattr(inner, "attr", "")) == "S"


def sums_of_slots(module: ast.Module) -> Iterator[int]:
    """The lines that divide by S or multiply with it; the joint solve's D / S is another sum."""
    sums = (node for node in ast.walk(module) if isinstance(node, ast.BinOp))
    for node in sums:
        if isinstance(node.op, ast.FloorDiv | ast.Mult | ast.Mod) and any(
            is_slots_per_request(side) for side in (node.left, node.right)
        ):
            yield node.lineno


def said(module: ast.Module, words: str) -> Iterator[int]:
    """The lines with a text that holds the words, docstrings left out."""
    prose = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr) and re.search(words, ast.unparse(node)):
            yield node.lineno
        if isinstance(node, ast.Constant) and id(node) not in prose and re.search(words, str(node.value)):
            yield node.lineno


def asked(module: ast.Module, name: str) -> Iterator[int]:
    """The lines that ask for an attribute of this name."""
    return (node.lineno for node in ast.walk(module) if isinstance(node, ast.Attribute) and node.attr == name)


HOMES: dict[str, tuple[tuple[str, ...], Callable[[ast.Module], Iterator[int]]]] = {
    # specification.py holds the closed forms as they are published
    "slots to requests and back": (("engine/request_slots.py", "specification.py"), sums_of_slots),
    "their words": (
        ("engine/request_slots.py",),
        lambda module: said(module, r"K // S|\bx S\b|// S\b|(//|\bx)( S)? {[\w.]*\bS}"),
    ),
    "the padding slot": (("engine/padding.py",), lambda module: asked(module, "charges_padding")),
    "the releases that are covered": (
        ("releases/rules.py",),
        lambda module: said(module, rf"{RELEASES[0]} to {LATEST}|RELEASES\[0\]}} to"),
    ),
    "how drafts are charged": (
        ("engine/draft_rules.py", "releases/rules.py"),
        lambda module: said(module, "^(in every slot|before the split|joint)$"),
    ),
}


@pytest.mark.parametrize("rule", HOMES)
def test_a_rule_stands_in_its_home(rule: str) -> None:
    """What changes a rule changes one file: nowhere else in the core and the pages is it asked or worded anew."""
    homes, found_in = HOMES[rule]
    files = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py"), *(ROOT / "sizing").rglob("*.py")]
    found = {file: [*found_in(ast.parse(file.read_text()))] for file in files}
    assert all(found[ROOT / "sizing" / home] for home in homes), "the test finds the rule where it is"
    assert {f"{file.relative_to(ROOT)}": lines for file, lines in found.items() if lines}.keys() == {
        f"sizing/{home}" for home in homes
    }, found


def test_readme_names_every_page() -> None:
    """Each file directly in pages/ is a page, and the README tells of it."""
    readme = (ROOT / "README.md").read_text()
    pages = sorted((ROOT / "pages").glob("[!_]*.py"))
    assert pages
    assert [page.name for page in pages if page.name not in readme] == []


def test_every_package_is_declared() -> None:
    """A new folder of the core or of the pages is named in pyproject.toml, or the wheel would lack it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {file.parent.relative_to(ROOT) for top in ("sizing", "pages") for file in (ROOT / top).rglob("*.py")}
    names = {".".join(folder.parts) for folder in folders}
    dashboard = {"sizing.dashboard", *(f"sizing.dashboard.{name}" for name in names if name.startswith("pages"))}
    assert set(declared) == {name for name in names if name.startswith("sizing")} | dashboard


def test_rooms_stand_in_the_order_that_is_held() -> None:
    """The table of docs/architecture.md lists the rooms from below, as `lint-imports` holds them."""
    table = re.findall(r"^\| (`[a-z].*?) \|", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    written = [room for row in table for room in re.findall(r"`(\w+)(?:/|\.py)`", row) if room not in ("app", "pages")]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert written == [room for room in reversed(contracts[0]["layers"]) if room != "__main__"]


def test_readme_gives_the_two_commands() -> None:
    """The README starts and tests with one line each, and .ci/run finds the one line that it runs, then the checks."""
    lines = (ROOT / "README.md").read_text().splitlines()
    assert lines.count(START) == 1
    assert [line for line in lines if "-m pytest" in line] == [TEST]
    assert all(os.access(ROOT / ".ci" / name, os.X_OK) for name in ("run", "check"))
    assert ".ci/check" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_holds_no_address(lock: str) -> None:
    """Lock files hold pins and hashes, so that they install from whatever index a machine uses."""
    assert re.findall(r"https?://.*|.*index-url.*|.*find-links.*", (ROOT / lock).read_text()) == []


def test_locks_keep_to_the_ranges() -> None:
    """What pyproject.toml asks for is pinned within its range."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = project["project"]["dependencies"]
    for lock, wanted in zip(LOCKS, (runtime, runtime + project["dependency-groups"]["test"]), strict=True):
        pinned = pins(lock)
        for requirement in map(Requirement, wanted):
            for pin in pinned[requirement.name]:
                (version,) = pin.specifier
                assert requirement.specifier.contains(version.version), f"{pin} in {lock}"


def test_tested_versions_are_the_ones_that_run() -> None:
    """The test lock is the runtime lock and more."""
    runtime, test = map(pins, LOCKS)
    assert runtime
    assert runtime.items() <= test.items()


def test_no_path_of_one_machine() -> None:
    """No file that is, or would be, in the repository names a folder of the machine it was written on."""
    names = run("git", "ls-files", "-co", "--exclude-standard", "-z").split("\0")
    texts = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    assert texts
    assert [name for name, text in texts.items() if re.search(rb"/(?:work|root|home)/", text)] == []
