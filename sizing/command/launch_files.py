"""The launch commands in a file of a repository: a shell script, a Kubernetes manifest or a compose file.

Each is given as one line of shell with the file's own variables put in, and flags of a `--config` file in front of the
command's own, which win, as in the engine (server_args_config_parser.py). Nothing is run.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from sizing.command.words import MAX_CHARACTERS

MAX_NODES = 20_000  # of a YAML file, a bound for hostile input
LAUNCHER = re.compile(r"sglang(?:\.launch_server|[ \t'\",\]\[\n-]+serve\b)|launch_server\.py")
CONFIG = re.compile(r"--config(?:=|\s+)(['\"]?)([^\s'\"]+)\1")
# $(NAME) of Kubernetes, ${NAME}, ${NAME:-default} and $NAME of a shell and of compose.
VARIABLE = re.compile(r"\$\((\w+)\)|\$\{(\w+)(?::?-([^}$]*))?\}|\$(\w+)")
YAML_NAMES = (".yaml", ".yml")

ReadText = Callable[[str], str | None]
"""The text of a file that the launch file names, None where it cannot be read."""


class Launch(NamedTuple):
    """One launch command of a file."""

    line: int
    """Where it begins, from 1."""
    text: str


class LaunchFileError(ValueError):
    """The file cannot be read; the sentence says why."""


def launches_in(text: str, name: str, read: ReadText) -> list[Launch]:
    """Every launch command of a file, in order. Raises LaunchFileError.

    >>> launches_in("sglang serve --model-path m --tp 8", "run.sh", lambda name: None)
    [Launch(line=1, text='sglang serve --model-path m --tp 8')]
    """
    found = _in_yaml(text) if name.lower().endswith(YAML_NAMES) else _in_shell(text)
    return [Launch(one.line, _with_config(one.text, read)) for one in found]


def _in_shell(text: str) -> list[Launch]:
    """From each launcher on; what stands before the first, variables perhaps, goes before every one."""
    begins = [
        text.rfind("\n", 0, found.start()) + 1 for found in LAUNCHER.finditer(text) if not _commented(text, found)
    ]
    begins = sorted(set(begins))
    ends = [*begins[1:], len(text)]
    head = text[: begins[0]] if begins else ""
    return [
        Launch(text.count("\n", 0, begin) + 1, (head + text[begin:end])[:MAX_CHARACTERS])
        for begin, end in zip(begins, ends, strict=True)
    ]


def _commented(text: str, found: re.Match[str]) -> bool:
    return text[text.rfind("\n", 0, found.start()) + 1 : found.start()].lstrip().startswith(("#", "echo "))


def _in_yaml(text: str) -> list[Launch]:
    try:
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise LaunchFileError(f"cannot be read as YAML{where}: correct it.") from None
    found = []
    for document in documents:
        for node in _mappings(document):
            launch = _of_container(node)
            if launch is not None:
                found.append(launch)
    return found


def _mappings(root: Any) -> Iterator[dict[str, Any]]:
    """Every mapping below a node, each once, by the text of its keys."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop(0)
        if id(node) in seen or node is None:
            continue
        seen.add(id(node))
        if len(seen) > MAX_NODES:
            raise LaunchFileError("holds more than any launch file: give the one of this deployment.")
        if isinstance(node, yaml.MappingNode):
            yield {str(key.value): value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _of_container(fields: dict[str, Any]) -> Launch | None:
    """The command of a container or a compose service; None where it launches no SGLang."""
    parts = [fields[name] for name in ("entrypoint", "command", "args") if name in fields]
    words = [word for part in parts for word in _words(part)]
    if not words:
        return None
    text = _filled(shlex.join(words), _environment(fields.get("env") or fields.get("environment")))
    if not LAUNCHER.search(text) and "--model-path" not in text:
        return None
    environment = _environment(fields.get("env") or fields.get("environment"))
    set_before = [f"{name}={shlex.quote(value)}" for name, value in environment.items() if name.startswith("SGLANG_")]
    return Launch(parts[0].start_mark.line + 1, " ".join([*set_before, text])[:MAX_CHARACTERS])


def _words(node: Any) -> list[str]:
    if isinstance(node, yaml.SequenceNode):
        return [str(item.value) for item in node.value if isinstance(item, yaml.ScalarNode)]
    try:
        return shlex.split(str(node.value)) if isinstance(node, yaml.ScalarNode) else []
    except ValueError:
        return str(node.value).split()


def _environment(node: Any) -> dict[str, str]:
    """Names and values: of `- name:` and `value:`, of `NAME: value` or of `- NAME=value`."""
    found: dict[str, str] = {}
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): str(value.value) for key, value in node.value if isinstance(value, yaml.ScalarNode)}
    for item in node.value if isinstance(node, yaml.SequenceNode) else ():
        if isinstance(item, yaml.ScalarNode):
            name, equals, value = str(item.value).partition("=")
            found |= {name: value} if equals else {}
        elif isinstance(item, yaml.MappingNode):
            pair = {str(key.value): value for key, value in item.value}
            if isinstance(pair.get("value"), yaml.ScalarNode) and "name" in pair:
                found[str(pair["name"].value)] = str(pair["value"].value)
    return found


def _filled(text: str, environment: dict[str, str]) -> str:
    """Variables that the file itself gives, put in; others stay and are said to be elsewhere."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[4]
        return environment.get(name, found[3] if found[3] is not None else found[0])

    return VARIABLE.sub(value, text.replace("$$", "$"))


def _with_config(text: str, read: ReadText) -> str:
    """A command with the flags of its `--config` file written out where the flag stood; else as it is."""
    found = CONFIG.search(text)
    content = read(found[2]) if found else None
    if found is None or content is None:
        return text
    first = re.search(r"\s--[a-zA-Z]", text)
    begin = first.start() if first else found.start()
    return f"{text[:begin]} {shlex.join(_flags(content, found[2]))}{text[begin : found.start()]}{text[found.end() :]}"


def _flags(content: str, name: str) -> list[str]:
    try:
        held = yaml.safe_load(content) if len(content) <= MAX_CHARACTERS and "*" not in content else None
    except (yaml.YAMLError, RecursionError, ValueError):
        held = None
    if not isinstance(held, dict):
        raise LaunchFileError(f"names {name} as --config, which is no YAML of flags: correct it.")
    words: list[str] = []
    for key, value in held.items():
        flag = f"--{str(key).replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif isinstance(value, list):
            words += [flag, *map(str, value)]
        elif value is not False and value is not None:
            words += [flag, str(value)]
    return words
