"""The installed form: the wheel in an environment of its own, started from an empty folder, every page opened."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from plotly.offline import get_plotlyjs
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

# Streamlit's own server is built on this library, so it is always there.
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from tests import container
from tests.conftest import finished

ROOT = Path(__file__).parents[1]
SOURCES = ("sizing", "pages", "app.py", ".streamlit", "pyproject.toml", "README.md")
START_SECONDS = 60  # a slow machine's first start compiles every module
PAGE_SECONDS = 60
LARGEST_MESSAGE = 2**24

# A proxy set in the environment must never see requests to our own machine.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Installed(NamedTuple):
    """The wheel and the environment it was installed into."""

    wheel: Path
    environment: Path

    @property
    def binaries(self) -> Path:
        """Where its commands are."""
        return self.environment / "bin"

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        (found,) = self.environment.glob("lib/python*/site-packages")
        return found


def run(*command: object) -> str:
    """What a command prints; a failure shows all of it."""
    done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True, env=clean())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def clean() -> dict[str, str]:
    """The environment without what points Python at the clone."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The wheel of a copy of the sources, installed beside what requirements.lock pins and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    source, environment = folder / "source", folder / "environment"
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "venv", environment)
    pip = (environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input", "-q")
    run(*pip, "wheel", "--no-deps", "-w", folder, source)
    (wheel,) = folder.glob("*.whl")
    # As the container does it, hashes included: there the rest of the Containerfile finds its packages.
    command, module, name, *options = container.install().words
    run(environment / "bin" / command, module, name, *options[:-1], ROOT / options[-1])
    run(*pip, "install", "--no-compile", "--no-deps", wheel)
    run(*pip, "check")
    yield Installed(wheel, environment)
    shutil.rmtree(environment)  # half a GB, which pytest would keep


def files_below(folder: Path) -> set[Path]:
    """Every file below a folder, without what Python itself writes beside sources."""
    return {
        path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_holds_every_file_and_only_sizing(installed: Installed) -> None:
    """Each file of the core, data included, and of the pages is in the wheel, and all of it below sizing/."""
    core = {Path("sizing") / file for file in files_below(ROOT / "sizing")}
    pages = {Path("sizing/dashboard/pages") / file for file in files_below(ROOT / "pages")}
    first = {Path("sizing/dashboard/app.py"), Path("sizing/dashboard/.streamlit/config.toml")}
    with zipfile.ZipFile(installed.wheel) as wheel:
        held = {Path(name) for name in wheel.namelist()}
    assert {file for file in held if not file.parts[0].endswith(".dist-info")} == core | pages | first
    assert [path for name in ("app*", "pages*") for path in installed.packages.glob(name)] == []


def test_test_dependencies_are_not_there(installed: Installed) -> None:
    """What the dashboard needs is what it declares."""
    assert [name for name in ("pytest", "hypothesis", "playwright") if (installed.packages / name).exists()] == []


STARTS: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "command": lambda binaries: (str(binaries / "hybrid-pool-sizing"),),
    "module": lambda binaries: (str(binaries / "python"), "-m", "sizing"),
}
PAGES = ("", *sorted(file.stem for file in (ROOT / "pages").glob("[!_]*.py")))  # as an address names them


@pytest.mark.parametrize("start", STARTS)
def test_every_page_opens_from_an_empty_folder(start: str, installed: Installed, tmp_path: Path) -> None:
    """Started anywhere, each page runs to its end without a fault and its figures find plotly.js.

    Beside it lies somebody's own package named `pages`, which must not stand in for ours. Nothing is written: neither
    into that folder nor into site-packages.
    """
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "__init__.py").touch()
    before = files_below(installed.packages), files_below(tmp_path)
    with serving((*STARTS[start](installed.binaries), "dashboard"), tmp_path) as address:
        scripts, figures = set(), set()
        for page in PAGES:
            replies = finished(opened(address, page))
            assert faults(replies) == [], page
            # Each message itself, whatever the browser holds: of a quick row of moves it may drop one meanwhile.
            again = finished(opened(address, page, [reply.hash for reply in replies]))
            assert {reply.WhichOneof("type") for reply in again} == {reply.WhichOneof("type") for reply in replies}, (
                page
            )
            titles = [reply.page_config_changed.title for reply in replies if reply.HasField("page_config_changed")]
            assert len(titles) == 1
            assert titles[0].endswith(" · Hybrid Pool Sizing"), page
            scripts |= {reply.navigation.page_script_hash for reply in replies if reply.HasField("navigation")}
            settings = next(reply.new_session.config for reply in replies if reply.HasField("new_session"))
            assert settings.hide_sidebar_nav
            assert not settings.gather_usage_stats
            figures |= plotly_urls(replies)
        assert len(scripts) == len(PAGES)
        (url,) = figures
        with DIRECT.open(f"http://{address}/{url}", timeout=START_SECONDS) as reply:
            assert reply.read().decode() == get_plotlyjs()
    assert (files_below(installed.packages), files_below(tmp_path)) == before


def test_an_unknown_option_is_one_sentence(installed: Installed, tmp_path: Path) -> None:
    """What Streamlit does not know is said as Streamlit says it, without a traceback."""
    command = [*STARTS["module"](installed.binaries), "dashboard", "--server.prot", "8600"]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, env=clean())
    assert done.returncode == 2
    assert "No such option" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_container_as_it_is_started(installed: Installed, tmp_path: Path) -> None:
    """Every step of the Containerfile in a folder, then its command with the environment of deploy/compose.yaml.

    Every page opens below the path that is served, under the name that is; the health check's own command finds it
    well, and nothing is written.
    """
    folder, home = tmp_path / "image", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    around = container.inside(installed.binaries, home)
    container.build(folder, around)
    before = files_below(folder), files_below(installed.packages)
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]
    around |= services["sizing-1"]["environment"]
    path, name = around["STREAMLIT_SERVER_BASE_URL_PATH"], around["STREAMLIT_SERVER_ALLOWED_HOSTS"]
    with serving(tuple(container.only("CMD").words), folder, around) as address:
        served = f"{name}:{address.rpartition(':')[2]}{path}"
        for page in PAGES:
            assert faults(finished(opened(served, page))) == [], page
        asked = urllib.request.Request(f"http://{address}{path}/", headers={"Host": "other.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            DIRECT.open(asked, timeout=START_SECONDS)
        port = container.only("EXPOSE").rest
        command = [word.replace(port, address.rpartition(":")[2]) for word in container.health_command()]
        subprocess.run(command, env=around, check=True)
    assert subprocess.run(command, env=around, check=False, stderr=subprocess.DEVNULL).returncode != 0
    assert (files_below(folder), files_below(installed.packages)) == before
    assert files_below(home) == set()


@contextmanager
def serving(command: tuple[str, ...], folder: Path, around: dict[str, str] | None = None) -> Iterator[str]:
    """Host and port of a dashboard that runs in a folder, under an environment, until the with block ends."""
    with socket.create_server(("localhost", 0)) as probe:
        address = f"localhost:{probe.getsockname()[1]}"
    port = address.rpartition(":")[2]
    process = subprocess.Popen(
        [*command, "--server.port", port], cwd=folder, env=around or clean(), stdin=subprocess.DEVNULL, text=True
    )
    base = (around or {}).get("STREAMLIT_SERVER_BASE_URL_PATH", "")
    try:
        deadline = time.monotonic() + START_SECONDS
        while not healthy(f"{address}{base}"):
            assert process.poll() is None, "the dashboard ended while starting; its output is below"
            assert time.monotonic() < deadline, f"the dashboard was not ready within {START_SECONDS} s"
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def healthy(address: str) -> bool:
    """Whether the server answers."""
    try:
        with DIRECT.open(f"http://{address}/_stcore/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


async def opened(address: str, page: str, holding: Iterable[str] = ()) -> list[ForwardMsg]:
    """All that the server sends a browser that opens a page, up to the end of its run; every name is this machine.

    The browser says that it is `holding` messages of these hashes.
    """
    request = BackMsg()
    request.rerun_script.page_name = page
    request.rerun_script.cached_message_hashes.extend(holding)
    stream, replies = f"ws://{address}/_stcore/stream", list[ForwardMsg]()
    port = int(address.partition("/")[0].rpartition(":")[2])
    async with (
        asyncio.timeout(PAGE_SECONDS),
        connect(
            stream,
            host="localhost",
            port=port,
            subprotocols=[Subprotocol("streamlit")],
            max_size=LARGEST_MESSAGE,
            proxy=None,
        ) as browser,
    ):
        await browser.send(request.SerializeToString())
        while not (replies and replies[-1].WhichOneof("type") == "script_finished"):
            replies.append(ForwardMsg.FromString(await browser.recv(decode=False)))
    return replies


def faults(replies: list[ForwardMsg]) -> list[str]:
    """Tracebacks, error boxes, and a page that is not found or does not come to its end."""
    elements = [reply.delta.new_element for reply in replies]
    found = [element.exception.message for element in elements if element.HasField("exception")]
    found += [element.alert.body for element in elements if element.HasField("alert") and element.alert.format == 1]
    found += ["no such page" for reply in replies if reply.HasField("page_not_found")]
    if replies[-1].script_finished != ForwardMsg.ScriptFinishedStatus.FINISHED_SUCCESSFULLY:
        found.append("did not finish")
    return found


def plotly_urls(replies: list[ForwardMsg]) -> set[str]:
    """Where the figures of a page look for plotly.js."""
    components = [reply.delta.new_element.bidi_component for reply in replies]
    given = [json.loads(component.bytes) for component in components if component.bytes]
    return {data["plotly_url"] for data in given if "plotly_url" in data}
