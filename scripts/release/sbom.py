"""Writes the software bill of materials of an artifact, beside it: ARTIFACT.cdx.json (CycloneDX 1.6) and ARTIFACT.spdx.json
(SPDX 2.3).

sbom.py ARTIFACT --type TYPE [--crates PACKAGE,...] [--debian FOLDER] [--locked]

--crates names workspace packages: the bill lists the crates that are linked into them, the C code in these crates, and Rust's
standard library. --debian names a folder with one dpkg status file for each Debian package, as container images have it, and
--locked lists all crates of Cargo.lock, for an archive of sources. The output depends on the artifact, the sources and
SOURCE_DATE_EPOCH only.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import urllib.parse
import uuid

from c_sources import C_SOURCES, NO_C_SOURCES
from component import Component

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Identifiers are derived from this one and from the artifact's hash, so that the same artifact has the same ones.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "pkg:generic/quadrille")
TOOL = "quadrille-sbom"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("artifact", type=pathlib.Path)
    arguments.add_argument("--type", required=True, choices=["application", "container", "file"])
    arguments.add_argument("--crates", type=lambda names: names.split(","), default=[])
    arguments.add_argument("--debian", type=pathlib.Path)
    arguments.add_argument("--locked", action="store_true")
    given = arguments.parse_args()
    parts = linked(given.crates) if given.crates else {}
    roots = {workspace_id(name) for name in given.crates}
    if given.locked:
        parts |= locked()
        roots |= set(parts)
    if given.debian:
        packages = debian(given.debian)
        parts |= packages
        roots |= set(packages)
    whole = artifact(given.artifact, given.type, roots)
    write(given.artifact, ".cdx.json", cyclonedx(whole, parts))
    write(given.artifact, ".spdx.json", spdx(whole, parts))


def write(artifact: pathlib.Path, ending: str, document: dict) -> None:
    artifact.with_name(artifact.name + ending).write_text(json.dumps(document, indent=2) + "\n")


def artifact(path: pathlib.Path, kind: str, roots: set[str]) -> Component:
    return Component(
        id=f"artifact:{path.name}",
        name=path.name,
        version=version(),
        license="Apache-2.0",
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        kind=kind,
        dependencies=roots,
    )


def version() -> str:
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def workspace_id(name: str) -> str:
    return f"workspace:{name}@{version()}"


def linked(packages: list[str]) -> dict[str, Component]:
    """Returns the crates that are linked into `packages`, without build scripts and procedural macros, and their C code."""
    target = host()
    metadata = cargo("metadata", "--format-version=1", f"--filter-platform={target}")
    metadata = json.loads(metadata)
    known = {(package["name"], package["version"]): package for package in metadata["packages"]}
    compiling = crates_that_compile_c(metadata)
    selected = [f"--package={package}" for package in packages]
    tree = cargo("tree", "--edges=normal,no-proc-macro", f"--target={target}", "--prefix=depth", "--format= {p}", *selected)
    graph = graph_of(tree)
    checksums = locked_checksums()
    parts = {}
    for crate, below in graph.items():
        part = component(known[crate], checksums.get(crate))
        part.dependencies = {component(known[other], None).id for other in below}
        for source in c_sources(known[crate], known[crate]["id"] in compiling):
            parts[source.id] = source
            part.dependencies.add(source.id)
        parts[part.id] = part
    standard = standard_library()
    for package in packages:
        parts[workspace_id(package)].dependencies.add(standard.id)
    parts[standard.id] = standard
    return parts


def graph_of(tree: str) -> dict[tuple[str, str], set[tuple[str, str]]]:
    """Reads the output of `cargo tree --prefix=depth --format=" {p}"`: returns the direct dependencies of each crate."""
    graph: dict[tuple[str, str], set[tuple[str, str]]] = {}
    above: list[tuple[str, str]] = []
    for line in filter(None, tree.splitlines()):
        depth, name, number = re.match(r"(\d+) (\S+) v(\S+)", line).groups()
        crate = (name, number)
        del above[int(depth) :]
        if above:
            graph[above[-1]].add(crate)
        above.append(crate)
        graph.setdefault(crate, set())
    return graph


def component(package: dict, checksum: str | None) -> Component:
    name, number = package["name"], package["version"]
    outside = package["source"] is not None
    purl = f"pkg:cargo/{name}@{urllib.parse.quote(number)}"
    return Component(
        id=purl if outside else workspace_id(name),
        name=name,
        version=number,
        license=spdx_expression(package["license"]),
        purl=purl if outside else None,
        sha256=checksum,
        repository=package["repository"] if outside else None,
    )


def spdx_expression(declared: str | None) -> str | None:
    """Returns the expression of a license field; older manifests separate alternatives by a slash."""
    return declared and re.sub(r"\s*/\s*", " OR ", declared)


def crates_that_compile_c(metadata: dict) -> set[str]:
    """Returns the identifiers of crates with a build script that uses a C compiler."""
    tools = {package["id"] for package in metadata["packages"] if package["name"] in ("cc", "cmake")}
    return {
        node["id"]
        for node in metadata["resolve"]["nodes"]
        for used in node["deps"]
        if used["pkg"] in tools and any(kind["kind"] == "build" for kind in used["dep_kinds"])
    }


def c_sources(package: dict, compiles: bool) -> list[Component]:
    """Returns the C code in a crate, with its own version."""
    name = package["name"]
    if name in C_SOURCES:
        return [C_SOURCES[name](pathlib.Path(package["manifest_path"]).parent, package)]
    if compiles and package["source"] and name not in NO_C_SOURCES:
        sys.exit(
            f"sbom.py: the crate {name} {package['version']} compiles C code that scripts/release/c_sources.py does not list: "
            "add a function that reads its version to C_SOURCES, or the crate to NO_C_SOURCES with the reason"
        )
    return []


def standard_library() -> Component:
    words = dict(line.split(": ", 1) for line in rustc().splitlines() if ": " in line)
    return Component(
        id=f"rust:std@{words['release']}",
        name="rust-std",
        version=words["release"],
        license="MIT OR Apache-2.0",
        purl=f"pkg:github/rust-lang/rust@{words['commit-hash']}",
        comment="Rust's standard library.",
    )


def locked() -> dict[str, Component]:
    """Returns all crates of Cargo.lock: those that are linked, run in build scripts, or used in tests."""
    parts = {}
    for package in lock_file():
        if "source" in package:
            purl = f"pkg:cargo/{package['name']}@{urllib.parse.quote(package['version'])}"
            parts[purl] = Component(
                id=purl, name=package["name"], version=package["version"], purl=purl, sha256=package["checksum"]
            )
    return parts


def locked_checksums() -> dict[tuple[str, str], str]:
    return {(package["name"], package["version"]): package["checksum"] for package in lock_file() if "checksum" in package}


def lock_file() -> list[dict]:
    return tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]


def debian(folder: pathlib.Path) -> dict[str, Component]:
    parts = {}
    for status in sorted(folder.iterdir()):
        fields = dict(re.findall(r"^(Package|Version|Architecture): (.*)$", status.read_text(), flags=re.MULTILINE))
        number = urllib.parse.quote(fields["Version"])
        purl = f"pkg:deb/debian/{urllib.parse.quote(fields['Package'])}@{number}?arch={fields['Architecture']}"
        parts[purl] = Component(id=purl, name=fields["Package"], version=fields["Version"], purl=purl)
    return parts


def cyclonedx(whole: Component, parts: dict[str, Component]) -> dict:
    ordered = [parts[key] for key in sorted(parts)]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{identifier(whole, 'cyclonedx')}",
        "version": 1,
        "metadata": {
            "timestamp": created(),
            "tools": {"components": [{"type": "application", "name": TOOL, "version": version()}]},
            "component": cyclonedx_component(whole),
        },
        "components": [cyclonedx_component(part) for part in ordered],
        "dependencies": [{"ref": part.id, "dependsOn": sorted(part.dependencies)} for part in [whole, *ordered]],
    }


def cyclonedx_component(part: Component) -> dict:
    fields = {
        "type": part.kind,
        "bom-ref": part.id,
        "name": part.name,
        "version": part.version,
        "description": part.comment,
        "hashes": part.sha256 and [{"alg": "SHA-256", "content": part.sha256}],
        "licenses": part.license and [{"expression": part.license}],
        "purl": part.purl,
        "externalReferences": part.repository and [{"type": "vcs", "url": part.repository}],
    }
    return {key: value for key, value in fields.items() if value}


def spdx(whole: Component, parts: dict[str, Component]) -> dict:
    ordered = [parts[key] for key in sorted(parts)]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", spdx_id(whole))]
    for part in [whole, *ordered]:
        relations += [(spdx_id(part), "DEPENDS_ON", spdx_id(parts[other])) for other in sorted(part.dependencies)]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": whole.name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{whole.name}-{identifier(whole, 'spdx')}",
        "creationInfo": {"created": created(), "creators": [f"Tool: {TOOL}-{version()}"]},
        "packages": [spdx_package(part) for part in [whole, *ordered]],
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in relations
        ],
    }


def spdx_package(part: Component) -> dict:
    fields = {
        "SPDXID": spdx_id(part),
        "name": part.name,
        "versionInfo": part.version,
        "comment": part.comment,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "checksums": part.sha256 and [{"algorithm": "SHA256", "checksumValue": part.sha256}],
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": part.license or "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": {"library": "LIBRARY", "file": "ARCHIVE"}.get(part.kind, part.kind.upper()),
        "externalRefs": part.purl
        and [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": part.purl}],
    }
    return {key: value for key, value in fields.items() if value is not None}


def spdx_id(part: Component) -> str:
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", part.id)


def identifier(whole: Component, form: str) -> uuid.UUID:
    return uuid.uuid5(NAMESPACE, f"{form}:{whole.name}:{whole.sha256}")


def created() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or sys.exit("sbom.py: SOURCE_DATE_EPOCH is not set: set it to the commit's time")
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def host() -> str:
    return re.search(r"^host: (.*)$", rustc(), flags=re.MULTILINE)[1]


def rustc() -> str:
    return run("rustc", "--version", "--verbose")


def cargo(command: str, *arguments: str) -> str:
    return run("cargo", command, "--locked", *arguments)


def run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
