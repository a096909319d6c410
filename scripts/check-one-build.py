"""check-one-build.py: every command selects the same build of BoringSSL and AWS-LC.

Compares the units that cargo would compile for their build scripts under different selections of packages, without compiling.
Each difference would cost minutes whenever a developer switches between commands; crates/one-build describes the remedy.
"""

import json
import os
import subprocess
import sys

# The first selection of each group is the reference for the others. Release builds have another profile, and their own group.
SELECTIONS = [
    [
        "test --workspace --no-run",
        "build --workspace",
        "check --workspace --all-targets",
        "check --package quadrille-gateway",
        "check --package quadrille-keyless",
        "check --package quadrille-kernels",
        "check --package quadrille-ocsp",
        "check --package quadrille-resumption",
        "test --package quadrille-engine --no-run",
        "test --package quadrille-cli --no-run",
        "test --workspace --test gateway --no-run",
        "build --package quadrille-cli",
    ],
    [
        "build --release --package quadrille-cli --package quadrille-bench-handshakes --package quadrille-openssl-provider",
        "build --release --package quadrille-cli --package quadrille-bench-handshakes --package quadrille-bench-kernels"
        " --features quadrille-bench-kernels/aws-lc",
        "build --release --workspace",
    ],
]
LIBRARIES = ["boring-sys", "aws-lc-sys"]


def units(selection):
    """Returns the units that cargo would compile."""
    command = ["cargo", *selection.split(), *os.environ.get("CARGO_FLAGS", "").split()]
    command += ["-Z", "unstable-options", "--unit-graph"]
    # The graph is an unstable feature of cargo, which this variable permits on a stable toolchain.
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)["units"]


def build_of(library, graph):
    """Returns the units of the library's build script, each with its features and its profile."""
    pending = [
        index
        for index, unit in enumerate(graph)
        if unit["mode"] == "run-custom-build" and f"#{library}@" in unit["pkg_id"]
    ]
    reached = set()
    while pending:
        index = pending.pop()
        if index not in reached:
            reached.add(index)
            pending += [dependency["index"] for dependency in graph[index]["dependencies"]]
    return {describe(graph[index]) for index in reached}


def describe(unit):
    # Cargo does not compare the profile's name.
    profile = {key: value for key, value in unit["profile"].items() if key != "name"}
    package = unit["pkg_id"].rsplit("#", 1)[-1]
    return f"{package} {unit['mode']} features {unit['features']} profile {json.dumps(profile, sort_keys=True)}"


def main():
    differences = []
    for first, *others in SELECTIONS:
        expected = {library: build_of(library, units(first)) for library in LIBRARIES}
        for selection in others:
            graph = units(selection)
            for library in LIBRARIES:
                found = build_of(library, graph)
                # A selection without the library compiles no unit.
                if found and found != expected[library]:
                    differences.append(f"cargo {selection}: another {library} than for `cargo {first}`")
                    differences += [f"    {line}" for line in sorted(found ^ expected[library])]
    print("\n".join(differences) or "one build of BoringSSL and AWS-LC for all commands")
    sys.exit(bool(differences))


main()
