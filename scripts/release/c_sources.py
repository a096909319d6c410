"""C and C++ code inside of crates that has a version of its own, for sbom.py."""

import json
import pathlib
import re
import sys

from component import Component


def boringssl(folder: pathlib.Path, package: dict) -> Component:
    """Identifies BoringSSL by the crate's own commit, which has BoringSSL as a submodule: the crate does not name the commit itself."""
    interface = found(folder / "deps/boringssl/include/openssl/base.h", r"#define BORINGSSL_API_VERSION (\d+)")[0]
    crate = json.loads((folder / ".cargo_vcs_info.json").read_text())["git"]["sha1"]
    patches = ", ".join(sorted(path.name for path in (folder / "patches").iterdir()))
    return part(
        "BoringSSL",
        f"api-{interface}",
        "Apache-2.0",
        f"pkg:generic/boringssl@api-{interface}?vcs_url=git%2Bhttps://github.com/cloudflare/boring%40{crate}",
        f"Submodule boring-sys/deps/boringssl of commit {crate} of cloudflare/boring, with patches that features of "
        f"boring-sys {package['version']} select ({patches}).",
    )


def aws_lc(folder: pathlib.Path, package: dict) -> Component:
    number = found(folder / "aws-lc/include/openssl/base.h", r'#define AWSLC_VERSION_NUMBER_STRING "(.+)"')[0]
    commit = found(folder / "Cargo.toml", r'(?m)^commit-hash = "([0-9a-f]{40})"')[0]
    return part(
        "AWS-LC",
        number,
        package["license"],
        f"pkg:github/aws/aws-lc@{commit}",
        f"Commit {commit}, in aws-lc-sys {package['version']}.",
    )


def mimalloc(folder: pathlib.Path, package: dict) -> Component:
    line = found(folder / "c_src/mimalloc/v3/include/mimalloc.h", r"#define MI_MALLOC_VERSION (\d+)(\d\d)(\d\d)\b")
    number = ".".join(str(int(digits)) for digits in line)
    return part("mimalloc", number, "MIT", f"pkg:github/microsoft/mimalloc@v{number}", f"In libmimalloc-sys {package['version']}.")


def zstd(folder: pathlib.Path, package: dict) -> Component:
    header = folder / "zstd/lib/zstd.h"
    number = ".".join(found(header, rf"#define ZSTD_VERSION_{name} +(\d+)")[0] for name in ("MAJOR", "MINOR", "RELEASE"))
    return part(
        "Zstandard", number, "BSD-3-Clause OR GPL-2.0-only", f"pkg:github/facebook/zstd@v{number}", f"In zstd-sys {package['version']}."
    )


def part(name: str, version: str, license: str, purl: str, comment: str) -> Component:
    return Component(id=f"c:{name}@{version}", name=name, version=version, license=license, purl=purl, comment=comment)


def found(path: pathlib.Path, pattern: str) -> tuple[str, ...]:
    match = re.search(pattern, path.read_text())
    if not match:
        sys.exit(f"sbom.py: {path.name} has no line that matches {pattern}: adapt scripts/release/c_sources.py to the new version")
    return match.groups()


C_SOURCES = {"boring-sys": boringssl, "aws-lc-sys": aws_lc, "libmimalloc-sys": mimalloc, "zstd-sys": zstd}

NO_C_SOURCES = {
    # Their C and assembly are maintained in the crates themselves.
    "psm",
    "ring",
    # It compiles C for Windows only.
    "stacker",
}
