"""The launch commands in a file of a repository: a shell script, a Kubernetes manifest, a compose file, or another that
holds shell: a Markdown page, a Dockerfile, a Makefile, a unit of systemd, a workflow.

Each is given as one line of shell with the file's own variables put in, and flags of a `--config` file in front of the
command's own, which win, as in the engine (server_args_config_parser.py). Nothing is run.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from sizing.command.words import MAX_CHARACTERS

MAX_NODES, MAX_MERGES = 20_000, 4  # of a YAML file, bounds for hostile input
LAUNCHER = re.compile(r"sglang(?:\.launch_server|[ \t'\",\]\[\n-]+serve\b)|launch_server\.py")
CONFIG = re.compile(r"--config(?:=|\s+)(['\"]?)([^\s'\"]+)\1")
# $(NAME) of Kubernetes, ${NAME}, ${NAME:-default} and $NAME of a shell and of compose.
VARIABLE = re.compile(r"\$\((\w+)\)|\$\{(\w+)(?::?-([^}$]*))?\}|\$(\w+)")
YAML_NAMES, MARKDOWN_NAMES = (".yaml", ".yml"), (".md", ".markdown")
FENCED = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n(.*?)^[ \t]*\1", re.MULTILINE | re.DOTALL)
CONTAINER = ("entrypoint", "command", "args")
ENVIRONMENT = ("env", "environment", "envs")
# How a Dockerfile, a unit of systemd and a Makefile set a variable; a shell's own is read with the command.
SET = re.compile(
    r"^(?:(?:ENV|ARG)[ \t]+(\w+)[ =]|Environment=\"?(\w+)=|(\w+)[ \t]*(?:[?:]=|::=|[ \t]=))([^\n]*)$", re.MULTILINE
)

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
    if name.lower().endswith(YAML_NAMES):
        found = _in_yaml(text)
    elif name.lower().endswith(MARKDOWN_NAMES):
        found = _in_markdown(text)
    else:
        found = _in_shell(text)
    return [Launch(one.line, _with_config(one.text, read)) for one in found]


def _in_markdown(text: str) -> list[Launch]:
    """In fenced blocks alone: what stands between them is prose."""
    found = []
    for block in FENCED.finditer(text):
        before = text.count("\n", 0, block.start(2))
        found += [one._replace(line=one.line + before) for one in _in_shell(block[2])]
    return found


def _in_shell(text: str) -> list[Launch]:
    """From each launcher on; what stands before the first, variables perhaps, goes before every one."""
    environment = {found[1] or found[2] or found[3]: found[4].strip().strip('"') for found in SET.finditer(text)}
    environment = {name: value for name, value in environment.items() if '"' not in value and "=" not in value}
    if environment:
        text = _filled(text, environment)
    begins = [
        text.rfind("\n", 0, found.start()) + 1 for found in LAUNCHER.finditer(text) if not _commented(text, found)
    ]
    begins = sorted(set(begins))
    if not begins:
        return []
    ends = [*begins[1:], len(text)]
    head = text[: begins[0]]
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
        if "{{" in text:
            raise LaunchFileError("is a template: give what “helm template” makes of it.") from None
        raise LaunchFileError(f"cannot be read as YAML{where}: correct it.") from None
    return [launch for document in documents for fields in _mappings(document) for launch in _of_mapping(fields)]


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
            fields = _fields(node)
            yield fields
            templates = node is root  # compose's own: what others take over by `<<` alone
            waiting += [value for name, value in fields.items() if not (templates and name.startswith("x-"))]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _fields(node: yaml.MappingNode, depth: int = 0) -> dict[str, Any]:
    """The keys of a mapping, those that it takes over by `<<` included."""
    found: dict[str, Any] = {}
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value == "<<" and depth < MAX_MERGES:
            for other in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                found = (_fields(other, depth + 1) if isinstance(other, yaml.MappingNode) else {}) | found
    own = {str(key.value): value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    own.pop("<<", None)
    return found | own


def _of_mapping(fields: dict[str, Any]) -> Iterator[Launch]:
    """The command of a container, or a script or a list of flags under any other key."""
    launch = _of_container(fields)
    if launch is not None:
        yield launch
    environment = _environment_of(fields)
    for name, node in fields.items():
        if name in CONTAINER or not isinstance(node, yaml.ScalarNode | yaml.SequenceNode):
            continue
        if isinstance(node, yaml.ScalarNode):
            if LAUNCHER.search(str(node.value)) and " --" in str(node.value):
                line = node.start_mark.line + (1 if node.style in ("|", ">") else 0)
                for one in _in_shell(_filled(str(node.value), environment)):
                    yield one._replace(line=one.line + line)
        elif any(word.startswith("--model-path") for word in _words(node)):
            yield Launch(node.start_mark.line + 1, _filled(shlex.join(_words(node)), environment)[:MAX_CHARACTERS])


def _environment_of(fields: dict[str, Any]) -> dict[str, str]:
    """What a container, a service or a job sets."""
    return next((_environment(fields[name]) for name in ENVIRONMENT if name in fields), {})


def _of_container(fields: dict[str, Any]) -> Launch | None:
    """The command of a container or a compose service; None where it launches no SGLang."""
    parts = [fields[name] for name in CONTAINER if name in fields]
    words = [word for part in parts for word in _words(part)]
    if not words:
        return None
    environment = _environment_of(fields)
    text = _filled(shlex.join(words), environment)
    if not LAUNCHER.search(text) and "--model-path" not in text:
        return None
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
