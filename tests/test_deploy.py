"""What stands in `deploy` fits the standard of its kind and the server that it runs, as far as that shows without
running an engine; nginx is run for real in tests/faults/test_behind_nginx.py."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from a2a_grpc import config
from a2a_grpc.bindings.mounts import HEALTH, READY
from tests.nginx import COUNT, DEPLOY, replica_options

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
compose_spec = pytest.importorskip("compose_spec", reason="needs compose-spec")

ROOT = DEPLOY.parent
KUBERNETES = ("1.31", "1.34", kubernetes_validate.latest_version())
"""Releases whose schemas the manifests must fit."""
QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def manifest(kind: str) -> dict[str, Any]:
    return next(found for found in manifests() if found["kind"] == kind)


def container() -> dict[str, Any]:
    found: dict[str, Any] = manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]
    return found


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each with what follows its name."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in text.splitlines())]


def image_environment() -> dict[str, str]:
    return dict(word.split("=", 1) for name, rest in instructions() if name == "ENV" for word in shlex.split(rest))


def seconds(text: str) -> float:
    assert text.endswith("s")
    return float(text[:-1])


@pytest.mark.parametrize("release", KUBERNETES)
def test_every_manifest_fits_the_schema_of_kubernetes(release: str) -> None:
    for found in manifests():
        kubernetes_validate.validate(found, release, strict=True)


def test_a_wrong_manifest_would_be_seen() -> None:
    wrong = manifest("Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES[0], strict=True)


def test_the_compose_file_fits_its_schema() -> None:
    # The parser knows no merge keys, which every engine does: they are resolved first.
    found = compose_spec.PyCompose.from_yaml(yaml.safe_dump(compose()))
    assert {f"replica-{number}" for number in range(1, COUNT + 1)} | {"proxy", "postgres", "nats"} == set(
        found.service_names()
    )
    wrong = compose()
    wrong["services"]["proxy"]["portz"] = []
    with pytest.raises(ValueError, match="portz"):
        compose_spec.PyCompose.from_yaml(yaml.safe_dump(wrong))


@pytest.mark.parametrize("place", ["image", "compose", "kubernetes"])
def test_every_option_that_is_set_exists_and_has_a_value_that_is_taken(place: str) -> None:
    image = image_environment()
    pod = manifest("ConfigMap")["data"] | {entry["name"]: "postgresql://a2a@h/d" for entry in container()["env"]}
    environment = image | {"image": {}, "compose": replica_options(), "kubernetes": pod}[place]
    known = {config.ENVIRONMENT_PREFIX + name.upper() for name in config.Options.__dataclass_fields__}
    ours = {name for name in environment if name.startswith(config.ENVIRONMENT_PREFIX)}
    assert ours <= known, ours - known
    options = config.read(environment=environment)
    assert (options.http, options.grpc) == ("0.0.0.0:8080", "0.0.0.0:50051")


def test_ports_and_probes_are_those_of_the_server() -> None:
    ports = {entry["name"]: entry["containerPort"] for entry in container()["ports"]}
    options = config.read(environment=image_environment())
    assert ports == {"http": int(options.http.split(":")[1]), "grpc": int(options.grpc.split(":")[1])}
    assert {str(port) for port in ports.values()} == set(dict(instructions())["EXPOSE"].split())
    for service in (found for found in manifests() if found["kind"] == "Service"):
        assert all(ports[entry["targetPort"]] == entry["port"] for entry in service["spec"]["ports"])
        assert service["spec"]["selector"] == manifest("Deployment")["spec"]["template"]["metadata"]["labels"]
    probes = {kind: container()[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "startup": HEALTH,
        "readiness": READY,
        "liveness": HEALTH,
    }
    assert {probe["port"] for probe in probes.values()} == {"http"}
    assert f"http://127.0.0.1:{ports['http']}{READY}" in dict(instructions())["HEALTHCHECK"]


def test_a_replica_has_the_time_to_end_its_turns() -> None:
    last = 4.0 + 1.0  # what readers are left after the grace
    replica = compose()["services"]["replica-1"]
    assert seconds(replica["stop_grace_period"]) > float(replica_options()["A2A_GRPC_GRACE"]) + last
    pod = manifest("Deployment")["spec"]["template"]["spec"]
    before = float(container()["lifecycle"]["preStop"]["exec"]["command"][1])
    grace = float(manifest("ConfigMap")["data"]["A2A_GRPC_GRACE"])
    assert pod["terminationGracePeriodSeconds"] > before + grace + last


def test_a_voluntary_disruption_leaves_replicas() -> None:
    labels = manifest("Deployment")["spec"]["selector"]["matchLabels"]
    budget, scaler = manifest("PodDisruptionBudget")["spec"], manifest("HorizontalPodAutoscaler")["spec"]
    assert budget["selector"]["matchLabels"] == labels
    assert budget["maxUnavailable"] < manifest("Deployment")["spec"]["replicas"] <= scaler["minReplicas"]
    assert scaler["scaleTargetRef"]["name"] == manifest("Deployment")["metadata"]["name"]


def test_nginx_knows_every_replica_by_an_address_that_stays() -> None:
    services = compose()["services"]
    replicas = {name: service for name, service in services.items() if name.startswith("replica-")}
    text = (DEPLOY / "nginx.conf").read_text()
    for port in (8080, 50051):
        assert set(re.findall(rf"server ([\w-]+):{port} ", text)) == set(replicas)
    addresses = {service["networks"]["default"]["ipv4_address"] for service in replicas.values()}
    assert len(addresses) == len(replicas)
    assert {entry.split(":", 1)[1] for entry in services["proxy"]["ports"]} == {"8080:8080", "50051:50051"}
    assert all(re.search(rf"listen {port}\b", text) for port in (8080, 50051))


def test_the_image_is_made_of_what_is_there(tmp_path: Path) -> None:
    """What the Dockerfile copies is all that the package needs to be built, and its entry point is in it."""
    kept = re.findall(r"^!(.+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    copied = [shlex.split(rest) for name, rest in instructions() if name == "COPY" and not rest.startswith("--from")]
    for *names, target in copied:
        for name in names:
            assert name in kept
            source, goal = ROOT / name, tmp_path / "source" / target / (name if target == "./" else "")
            shutil.copytree(source, goal) if source.is_dir() else shutil.copy(
                source, (goal.parent.mkdir(exist_ok=True), goal)[1]
            )
    install = next(rest for name, rest in instructions() if name == "RUN" and "pip install" in rest)
    assert (extras := re.search(r'"\.\[([a-z,]+)\]"', install))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), "."]
    subprocess.run(
        command, cwd=tmp_path / "source", check=True, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    )
    wheel = ZipFile(next(tmp_path.glob("*.whl")))
    names = wheel.namelist()
    read = {name.rpartition("/")[2]: name for name in names if ".dist-info/" in name}
    told = wheel.read(read["METADATA"]).decode()
    assert set(extras[1].split(",")) <= set(re.findall(r"^Provides-Extra: (.+)$", told, re.MULTILINE))
    assert {"a2a_grpc/cli.py", "a2a_grpc/tasks/postgres.py", "a2a_stubs/v1.py"} <= set(names)
    script, _ = yaml.safe_load(dict(instructions())["ENTRYPOINT"])
    assert f"{script} = a2a_grpc.cli:main" in wheel.read(read["entry_points.txt"]).decode()
