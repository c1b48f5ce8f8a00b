#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of packaging/sbom.py: on a small tree, and on the workspace by another way to read it."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import sbom

LINKED = """\
0\ttoll-preload v1.2.3 (/src/toll-preload)\tMIT OR Apache-2.0
1\tlibc v0.2.1\tMIT/Apache-2.0

0\ttollfree v1.2.3 (/src/tollfree)\tMIT OR Apache-2.0
1\tlibc v0.2.1\tMIT/Apache-2.0 (*)
1\ttoml v0.9.12+spec-1.1.0\t
2\tlibc v0.2.1\tMIT/Apache-2.0
"""
BUILT = LINKED + """\
1\tderive v1.0.0 (proc-macro)\tMIT
2\tlibc v0.2.1\tMIT/Apache-2.0
1\tprobe v3.0.0\tMIT
"""
LOCK = """\
version = 4
[[package]]
name = "libc"
version = "0.2.1"
source = "registry"
checksum = "11"
[[package]]
name = "tollfree"
version = "1.2.3"
"""


def by_name(document):
    return {package["name"]: package for package in document["packages"]}


def relations(document):
    return {(r["spdxElementId"].removeprefix("SPDXRef-"), r["relationshipType"],
             r["relatedSpdxElement"].removeprefix("SPDXRef-")) for r in document["relationships"]}


class ASmallTree(unittest.TestCase):
    def setUp(self):
        self.document = sbom.document(LINKED, BUILT, LOCK, "1.85.0", 86400)

    def test_names_each_package_with_version_licence_and_checksum(self):
        packages = by_name(self.document)
        self.assertEqual(sorted(packages), ["derive", "libc", "probe", "std", "toll-preload", "tollfree", "toml"])
        self.assertEqual(packages["libc"]["versionInfo"], "0.2.1")
        self.assertEqual(packages["libc"]["licenseDeclared"], "MIT OR Apache-2.0")
        self.assertEqual(packages["libc"]["checksums"], [{"algorithm": "SHA256", "checksumValue": "11"}])
        self.assertEqual(packages["libc"]["externalRefs"][0]["referenceLocator"], "pkg:cargo/libc@0.2.1")
        self.assertEqual(packages["toml"]["licenseDeclared"], "NOASSERTION")
        self.assertNotIn("checksums", packages["tollfree"])

    def test_tells_what_is_linked_from_what_builds_it(self):
        self.assertEqual(relations(self.document), {
            ("DOCUMENT", "DESCRIBES", "toll-preload-v1.2.3"),
            ("DOCUMENT", "DESCRIBES", "tollfree-v1.2.3"),
            ("toll-preload-v1.2.3", "DEPENDS_ON", "std-v1.85.0"),
            ("tollfree-v1.2.3", "DEPENDS_ON", "std-v1.85.0"),
            ("toll-preload-v1.2.3", "DEPENDS_ON", "libc-v0.2.1"),
            ("tollfree-v1.2.3", "DEPENDS_ON", "libc-v0.2.1"),
            ("tollfree-v1.2.3", "DEPENDS_ON", "toml-v0.9.12-spec-1.1.0"),
            ("toml-v0.9.12-spec-1.1.0", "DEPENDS_ON", "libc-v0.2.1"),
            ("derive-v1.0.0", "BUILD_DEPENDENCY_OF", "tollfree-v1.2.3"),
            ("libc-v0.2.1", "BUILD_DEPENDENCY_OF", "derive-v1.0.0"),
            ("probe-v3.0.0", "BUILD_DEPENDENCY_OF", "tollfree-v1.2.3"),
        })

    def test_depends_on_nothing_but_its_input(self):
        again = sbom.document(LINKED, BUILT, LOCK, "1.85.0", 86400)
        self.assertEqual(again, self.document)
        other = sbom.document(LINKED, BUILT, LOCK, "1.86.0", 86400)
        self.assertNotEqual(other["documentNamespace"], self.document["documentNamespace"])
        self.assertEqual(self.document["creationInfo"]["created"], "1970-01-02T00:00:00Z")


class TheWorkspace(unittest.TestCase):
    def make(self, path, **environment):
        return subprocess.run([sys.executable, "-B", sbom.__file__, path], env=os.environ | environment,
                              stderr=subprocess.PIPE, text=True, check=False)

    def test_lists_locked_packages_alone_each_once(self):
        """Cargo.lock, read by lines, has every package that the document lists, with the same checksum."""
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "a.json"
            self.assertEqual(self.make(path, SOURCE_DATE_EPOCH="1").stderr, "")
            document = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual(os.listdir(directory), ["a.json"])
        lock = (pathlib.Path(sbom.__file__).parent.parent / "Cargo.lock").read_text(encoding="utf-8")
        locked = {found.group(1, 2): found[3] for found in re.finditer(
            r'^name = "(.*)"\nversion = "(.*)"\n(?:source = .*\n)?(?:checksum = "(.*)"\n)?', lock, re.M)}
        listed = [package for package in document["packages"] if package["name"] != "std"]
        for package in listed:
            checksums = [entry["checksumValue"] for entry in package.get("checksums", [])]
            self.assertEqual(checksums, [sum for sum in [locked[package["name"], package["versionInfo"]]] if sum])
        identities = [package["SPDXID"] for package in document["packages"]]
        self.assertEqual(len(identities), len(set(identities)))
        self.assertLessEqual({end for one, _, other in relations(document) for end in (one, other)},
                             {"DOCUMENT", *(identity.removeprefix("SPDXRef-") for identity in identities)})
        names = set(by_name(document))
        self.assertLessEqual({"tollfree", "toll-preload", "toll-model", "clap", "libc", "syn"}, names)
        self.assertFalse({"toll-lab", "toll-testkit", "proptest", "insta"} & names)

    def test_bad_input_is_named_and_nothing_is_written(self):
        with tempfile.TemporaryDirectory() as directory:
            undated = self.make(f"{directory}/a.json", SOURCE_DATE_EPOCH="")
            self.assertEqual((undated.returncode, undated.stderr.count("\n")), (3, 1))
            self.assertIn("SOURCE_DATE_EPOCH", undated.stderr)
            os.mkdir(f"{directory}/b.json")
            blocked = self.make(f"{directory}/b.json", SOURCE_DATE_EPOCH="1")
            self.assertEqual((blocked.returncode, blocked.stderr.count("\n")), (3, 1))
            self.assertIn(f"{directory}/b.json", blocked.stderr)
            self.assertEqual(os.listdir(directory), ["b.json"])


if __name__ == "__main__":
    unittest.main()
