"""Tests sbom.py: the graph of crates, the C code, and both forms against their schemas. Needs the packages of
`install-tools.sh sbom-validators`.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import sbom
from component import Component
from validate_sbom import cyclonedx_errors, spdx_errors

SBOM = pathlib.Path(__file__).with_name("sbom.py")


def whole() -> Component:
    return Component("artifact:a.deb", "a.deb", "1.0", "Apache-2.0", sha256="0" * 64, kind="application", dependencies={"b"})


def parts() -> dict[str, Component]:
    crate = Component("b", "b", "2.0+c.3", "MIT OR Apache-2.0", "pkg:cargo/b@2.0%2Bc.3", "1" * 64, "https://example.com/b")
    crate.dependencies = {"c"}
    return {"b": crate, "c": Component("c", "c", "3", comment="C code.")}


class Graph(unittest.TestCase):
    def test_depth_says_what_depends_on_what(self) -> None:
        tree = "0 a v1.0.0 (/a)\n1 b v2.0.0\n2 c v3.0.0+z.1\n1 c v3.0.0+z.1\n\n0 d v4.0.0\n1 b v2.0.0 (*)\n"
        expected = {
            ("a", "1.0.0"): {("b", "2.0.0"), ("c", "3.0.0+z.1")},
            ("b", "2.0.0"): {("c", "3.0.0+z.1")},
            ("c", "3.0.0+z.1"): set(),
            ("d", "4.0.0"): {("b", "2.0.0")},
        }
        self.assertEqual(sbom.graph_of(tree), expected)

    def test_alternatives_with_a_slash_become_an_expression(self) -> None:
        self.assertEqual(sbom.spdx_expression("MIT/Apache-2.0"), "MIT OR Apache-2.0")
        self.assertIsNone(sbom.spdx_expression(None))

    def test_unknown_c_code_is_refused(self) -> None:
        crate = {"name": "new-sys", "version": "1.0.0", "source": "registry", "manifest_path": "/new-sys/Cargo.toml"}
        self.assertEqual(sbom.c_sources(crate, compiles=False), [])
        with self.assertRaisesRegex(SystemExit, "new-sys 1.0.0 compiles C code"):
            sbom.c_sources(crate, compiles=True)


class Forms(unittest.TestCase):
    def setUp(self) -> None:
        os.environ["SOURCE_DATE_EPOCH"] = "1000000000"

    def test_cyclonedx_is_valid_and_says_what_depends_on_what(self) -> None:
        document = sbom.cyclonedx(whole(), parts())
        self.assertEqual(cyclonedx_errors(document), [])
        self.assertEqual(document["metadata"]["timestamp"], "2001-09-09T01:46:40Z")
        self.assertIn({"ref": "b", "dependsOn": ["c"]}, document["dependencies"])
        document["components"][0]["type"] = "crate"
        self.assertNotEqual(cyclonedx_errors(document), [])

    def test_spdx_is_valid_and_says_what_depends_on_what(self) -> None:
        document = sbom.spdx(whole(), parts())
        self.assertEqual(spdx_errors(document), [])
        relation = {"spdxElementId": "SPDXRef-b", "relationshipType": "DEPENDS_ON", "relatedSpdxElement": "SPDXRef-c"}
        self.assertIn(relation, document["relationships"])
        del document["packages"][0]["downloadLocation"]
        self.assertNotEqual(spdx_errors(document), [])


class Workspace(unittest.TestCase):
    """The whole program, on this workspace."""

    def test_each_linked_crate_and_its_c_code_is_listed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            artifact = pathlib.Path(folder, "quadrille.tar.gz")
            artifact.write_bytes(b"an artifact")
            command = [sys.executable, SBOM, artifact, "--type", "application", "--crates"]
            subprocess.run([*command, "quadrille-cli,quadrille-openssl-provider"], check=True, env=environment())
            cyclonedx = json.loads(artifact.with_name(artifact.name + ".cdx.json").read_text())
            spdx = json.loads(artifact.with_name(artifact.name + ".spdx.json").read_text())
        self.assertEqual(cyclonedx_errors(cyclonedx), [])
        self.assertEqual(spdx_errors(spdx), [])
        components = {component["name"]: component for component in cyclonedx["components"]}
        self.assertLessEqual({"BoringSSL", "AWS-LC", "mimalloc", "Zstandard", "rust-std", "tokio"}, set(components))
        # Of tests, of build scripts, and procedural macros.
        self.assertTrue({"tungstenite", "bindgen", "cc", "serde_derive"}.isdisjoint(components))
        self.assertRegex(components["AWS-LC"]["purl"], "@[0-9a-f]{40}$")
        for component in cyclonedx["components"]:
            self.assertTrue(component["version"] and component["licenses"], component)
        self.assertEqual(len(spdx["packages"]), len(components_and_whole(cyclonedx)))


def components_and_whole(document: dict) -> list[dict]:
    return [document["metadata"]["component"], *document["components"]]


def environment() -> dict[str, str]:
    return {**os.environ, "SOURCE_DATE_EPOCH": "1000000000"}


if __name__ == "__main__":
    unittest.main()
