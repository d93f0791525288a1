"""deploy/: the container, compose and Kubernetes files say the same as nginx's configuration and as the app."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from streamlit import config

from sizing.bootlog import text as log_text
from sizing.models import fields
from sizing.traffic import trace_file
from sizing.version import tool_version
from tests import container

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
NGINX = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
KUBERNETES: dict[str, dict[str, Any]] = {
    part["kind"]: part for part in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
}
SERVERS = {name: service for name, service in COMPOSE["services"].items() if name != "proxy"}
POD = KUBERNETES["Deployment"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
PORT = int(container.only("EXPOSE").rest)
LARGEST_UPLOAD = trace_file.MAX_BYTES
SIZES = {"k": 2**10, "m": 2**20, "g": 2**30, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def nginx(directive: str) -> str:
    """The value of a directive that stands once."""
    (found,) = re.findall(rf"^\s*{directive}\s+([^;]+);", NGINX, re.MULTILINE)
    return str(found)


def size(text: str) -> int:
    """A size as one of these files writes it [bytes]."""
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]+)", text).groups()  # type: ignore[union-attr]
    return int(number) * SIZES[unit.lower()]


def test_the_largest_upload_is_a_trace() -> None:
    """No page takes more than what the proxies let through and the servers have room for."""
    assert max(log_text.MAX_BYTES, fields.MAX_FILE_BYTES) <= LARGEST_UPLOAD


def test_the_container_is_what_is_promised() -> None:
    """Base image by a build argument, packages by hash, nobody in particular, a health check, one port."""
    first, second, *_ = container.steps()
    assert first.name == "ARG"
    assert first.rest.endswith("-slim")
    assert second == container.Step("FROM", "${BASE}")
    assert "--require-hashes -r requirements.lock" in container.install().rest
    names, pinned = re.findall(r"^[\w.\[\]-]+==", lock := (ROOT / "requirements.lock").read_text(), re.MULTILINE), 0
    for block in re.split(r"\n(?=\w)", lock):
        pinned += "==" in block.split("\n", 1)[0] and "--hash=sha256:" in block
    assert len(names) == pinned > 10
    assert container.only("USER").rest == "65534:65534"
    command = container.only("CMD").words
    assert command[-4:] == ["--server.address", "0.0.0.0", "--server.port", str(PORT)]
    assert f"http://127.0.0.1:{PORT}" in " ".join(container.health_command())


def test_every_file_the_container_takes_is_there() -> None:
    """And the app needs no other: what is copied is what the wheel's sources are, without tests and documents."""
    taken = {word for step in container.steps() if step.name == "COPY" for word in step.words[:-1]}
    assert {name for name in taken if not (ROOT / name).exists()} == set()
    assert taken == {"requirements.lock", "pyproject.toml", "app.py", ".streamlit", "pages", "sizing"}


@pytest.mark.parametrize("where", ["compose", "Kubernetes"])
def test_the_environment_is_that_of_the_proxy(where: str) -> None:
    """Options that Streamlit has, with the name and the path that nginx and the ingress serve."""
    found = {
        "compose": [service["environment"] for service in SERVERS.values()],
        "Kubernetes": [{pair["name"]: pair["value"] for pair in CONTAINER["env"]}],
    }[where]
    options = {f"STREAMLIT_{name.replace('.', '_')}".upper() for name in _snake(config.get_config_options())}
    for environment in found:
        assert environment.keys() <= options
        assert environment == {
            "STREAMLIT_SERVER_ALLOWED_HOSTS": nginx("server_name"),
            "STREAMLIT_SERVER_BASE_URL_PATH": "/sizing",
        }
    assert "location /sizing/ {" in NGINX


def _snake(names: Any) -> set[str]:
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name) for name in names}


def test_compose() -> None:
    """Two servers that can write nothing but /tmp, in front of them nginx with the configuration that is tested."""
    assert re.findall(r"^    server (\S+):(\d+)", NGINX, re.MULTILINE) == [(name, str(PORT)) for name in SERVERS]
    assert len(SERVERS) == 2
    for service in SERVERS.values():
        assert (DEPLOY / service["build"]["context"]).resolve() == ROOT
        assert (ROOT / service["build"]["dockerfile"]) == container.FILE
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "ports" not in service  # the proxy alone is reached from outside
        (place,) = service["tmpfs"]
        name, _, amount = place.partition(":size=")
        assert name == container.environment()["HOME"] == "/tmp"
        assert size(amount) > LARGEST_UPLOAD
        assert size(service["mem_limit"]) > size(amount)
    proxy = COMPOSE["services"]["proxy"]
    assert proxy["depends_on"] == list(SERVERS)
    assert proxy["ports"] == [f"{nginx('listen').removesuffix(' ssl')}:443"]
    mounts = dict(volume.split(":")[:2] for volume in proxy["volumes"])
    assert (DEPLOY / "nginx.conf").samefile(DEPLOY / next(iter(mounts)))
    assert {Path(nginx(key)).parent for key in ("ssl_certificate", "ssl_certificate_key")} == {Path(mounts["./tls"])}


def test_kubernetes() -> None:
    """Two replicas behind an ingress with sticky sessions; every name that one part uses is another's."""
    deployment, service, ingress = (KUBERNETES[kind]["spec"] for kind in ("Deployment", "Service", "Ingress"))
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["replicas"] == 2
    assert deployment["selector"]["matchLabels"] == service["selector"] == labels
    (port,) = CONTAINER["ports"]
    assert port == {"name": service["ports"][0]["targetPort"], "containerPort": PORT}
    (rule,) = ingress["rules"]
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"]["name"] == KUBERNETES["Service"]["metadata"]["name"]
    assert rule["host"] == nginx("server_name") == ingress["tls"][0]["hosts"][0]
    assert path["path"] == "/sizing"
    for probe in (CONTAINER["readinessProbe"], CONTAINER["livenessProbe"]):
        assert probe["httpGet"]["path"] == f"{path['path']}/_stcore/health"
        assert probe["httpGet"]["port"] == port["name"]
        assert probe["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "localhost"}]
    assert CONTAINER["image"].endswith(f":{tool_version()}")


def test_kubernetes_gives_no_rights() -> None:
    """Nobody, no token, nothing to write but /tmp in memory, which holds the largest upload."""
    assert POD["automountServiceAccountToken"] is False
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert f"{POD['securityContext']['runAsUser']}:65534" == container.only("USER").rest
    rights = CONTAINER["securityContext"]
    assert (rights["readOnlyRootFilesystem"], rights["allowPrivilegeEscalation"]) == (True, False)
    assert rights["capabilities"] == {"drop": ["ALL"]}
    (mount,), (volume,) = CONTAINER["volumeMounts"], POD["volumes"]
    assert (mount["name"], mount["mountPath"]) == (volume["name"], "/tmp")
    assert size(volume["emptyDir"]["sizeLimit"]) > LARGEST_UPLOAD
    assert size(CONTAINER["resources"]["limits"]["memory"]) > size(volume["emptyDir"]["sizeLimit"])


def test_both_proxies_do_the_same() -> None:
    """Sticky sessions, the largest upload through and on no disk, long WebSockets, a dead server passed over, no log.

    Annotations as ingress-nginx documents them.
    """
    notes = {key.partition("/")[2]: value for key, value in KUBERNETES["Ingress"]["metadata"]["annotations"].items()}
    assert "ip_hash;" in NGINX
    assert notes["affinity"] == "cookie"
    assert notes["session-cookie-path"] == "/sizing"
    assert notes["session-cookie-change-on-failure"] == "true"
    assert notes["proxy-body-size"] == nginx("client_max_body_size")
    assert size(notes["proxy-body-size"]) > LARGEST_UPLOAD
    assert notes["proxy-request-buffering"] == nginx("proxy_request_buffering") == "off"
    assert f"{notes['proxy-connect-timeout']}s" == nginx("proxy_connect_timeout")
    assert (notes["proxy-read-timeout"], nginx("proxy_read_timeout")) == ("3600", "1h")
    assert (notes["enable-access-log"], nginx("access_log")) == ("false", "off")
    assert nginx("proxy_set_header Host") == "$http_host"
    assert nginx("proxy_set_header Upgrade") == "$http_upgrade"
