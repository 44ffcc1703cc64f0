"""Generate the Python code of the contract, for the server and the Python client at once.

Run it with a Python that has grpcio-tools and mypy-protobuf of the versions below (in an
environment of its own: these tools want an older protobuf than the server runs on)::

    python proto/generate.py           # write both copies
    python proto/generate.py --check   # exit 1 if a copy is not what would be written

Both copies come from one run, so they differ in the names of their packages only.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from importlib import metadata, resources
from pathlib import Path

PROTO = Path(__file__).parent
ROOT = PROTO.parent
COPIES = {
    "lot_grpc.pb": ROOT / "lot_grpc" / "pb",
    "lot_client.pb": ROOT / "clients" / "python" / "src" / "lot_client" / "pb",
}
"""Where each copy goes, by the name its package has there."""

TOOLS = {"grpcio-tools": "1.76.0", "mypy-protobuf": "5.1.0"}
"""Exactly these: generated code refuses to load on runtimes older than its generator."""

PACKAGES = {
    "": "Generated code of the contract. Do not edit: see `proto/README.md`.",
    "buf": "Generated code of what the contract imports.",
    "buf/validate": "The rules that the contract's fields carry.",
    "lot": "Generated code of the contract.",
    "lot/v1": "Package `lot.v1` of the contract.",
}

ABSOLUTE_IMPORT = re.compile(r"^from (lot|buf)\.", re.MULTILINE)


def main() -> int:
    """Write or check both copies; the exit code is 0 when they are what the contract says."""
    parser = argparse.ArgumentParser(description="Generate the Python code of the contract.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on differences")
    check: bool = parser.parse_args().check
    complaint = wrong_tools()
    if complaint:
        sys.stderr.write(f"{complaint}\n")
        return 2
    files = generate()
    differences = [
        path
        for package, target in COPIES.items()
        for path in changed(target, files_for(package, files), write=not check)
    ]
    for path in differences:
        sys.stdout.write(f"{'differs' if check else 'written'}: {path.relative_to(ROOT)}\n")
    if check and differences:
        sys.stderr.write(f"run: {sys.executable} proto/generate.py\n")
        return 1
    return 0


def wrong_tools() -> str:
    """What is wrong with the installed generators, or nothing."""
    for name, wanted in TOOLS.items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = "none"
        if found != wanted:
            wants = " ".join(f"{tool}=={version}" for tool, version in TOOLS.items())
            return f"{name} is {found}, needed is {wanted}: pip install {wants}"
    return ""


def generate() -> dict[str, str]:
    """Generated files by their path below the package, imports as protoc writes them."""
    contract = sorted(path.relative_to(PROTO).as_posix() for path in PROTO.glob("lot/v1/*.proto"))
    services = [path for path in contract if path.endswith("_service.proto")]
    with tempfile.TemporaryDirectory() as folder:
        protoc(folder, ["python"], ["buf/validate/validate.proto"])
        protoc(folder, ["python", "mypy"], contract)
        protoc(folder, ["grpc_python", "mypy_grpc"], services)
        out = Path(folder)
        files = {
            path.relative_to(out).as_posix(): path.read_text(encoding="utf-8")
            for path in out.rglob("*.py*")
        }
    for package, docstring in PACKAGES.items():
        files[f"{package}/__init__.py".lstrip("/")] = f'"""{docstring}"""\n'
    return files


def protoc(out: str, kinds: list[str], protos: list[str]) -> None:
    """Run the compiler that comes with this Python; its own words go to stderr if it fails."""
    scripts = Path(sys.executable).parent
    well_known = resources.files("grpc_tools") / "_proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", f"-I{well_known}"]
    command += [f"--plugin={plugin}={scripts / plugin}" for plugin in plugins(kinds)]
    command += [f"--{kind}_out={out}" for kind in kinds]
    command += protos
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode != 0:
        sys.exit(done.stderr)


def plugins(kinds: list[str]) -> list[str]:
    """Names of the programs that the kinds of output need besides the compiler."""
    return [f"protoc-gen-{kind}" for kind in kinds if kind.startswith("mypy")]


def files_for(package: str, files: dict[str, str]) -> dict[str, str]:
    """The files with imports of each other below ``package``; protoc knows no such prefix."""
    return {path: ABSOLUTE_IMPORT.sub(rf"from {package}.\1.", text) for path, text in files.items()}


def changed(target: Path, files: dict[str, str], *, write: bool) -> list[Path]:
    """Paths below ``target`` that are not as in ``files``; with ``write`` they are made so."""
    there = {path for path in target.rglob("*.py*") if path.suffix in {".py", ".pyi"}}
    wanted = {target / path: text for path, text in files.items()}
    stale = sorted(there - wanted.keys())
    differing = [
        path
        for path, text in sorted(wanted.items())
        if path not in there or path.read_bytes() != text.encode()
    ]
    if write:
        for path in stale:
            path.unlink()
        for path in differing:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted[path].encode())
    return stale + differing


if __name__ == "__main__":
    sys.exit(main())
