#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of packaging/notices.py: on small packages, and on the workspace."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import notices
import sbom

LINKED = """\
0\ttollfree v1.2.3 (/src/tollfree)\tMIT OR Apache-2.0
1\talpha v0.1.0\tMIT OR Apache-2.0
1\tbeta v0.2.0\tMIT
2\tgamma v0.3.0\tMIT
"""


class SmallPackages(unittest.TestCase):
    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.metadata = {"packages": [self.package("tollfree", "1.2.3", None)]}
        self.write("LICENSES/MIT.txt", "the MIT licence")
        self.write("LICENSES/Apache-2.0.txt", "the Apache licence")
        for name, version in [("alpha", "0.1.0"), ("beta", "0.2.0"), ("gamma", "0.3.0"), ("unused", "1.0.0")]:
            self.metadata["packages"].append(self.package(name, version, "registry"))

    def package(self, name, version, source):
        self.write(f"{name}/Cargo.toml", "")
        return {"name": name, "version": version, "source": source, "authors": [f"Author of {name}"],
                "manifest_path": f"{self.root}/{name}/Cargo.toml"}

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def document(self):
        return notices.document(LINKED, json.dumps(self.metadata), self.root / "LICENSES")

    def test_each_linked_package_has_its_licence_and_the_texts_of_its_source(self):
        self.write("alpha/LICENSE-APACHE", "  the Apache\nlicence ")
        self.write("alpha/LICENSE-MIT", "alpha's copyright")
        self.write("alpha/src/license.rs", "no licence")
        self.write("beta/COPYING", "beta's copyright")
        self.write("beta/LICENSES/Extra.txt", "another of beta")
        self.write("gamma/NOTICE.md", "gamma's notice")
        self.write("unused/LICENSE", "unused")
        document = self.document()
        self.assertIn("\nalpha v0.1.0 (MIT OR Apache-2.0): texts 1, 3\n", document)
        self.assertIn("\nbeta v0.2.0 (MIT): texts 4, 5\n", document)
        self.assertIn("\ngamma v0.3.0 (MIT): text 6\n", document)
        self.assertIn(" Text 3 ", document)
        for text in ["alpha's copyright", "beta's copyright", "another of beta", "gamma's notice", "the MIT licence"]:
            self.assertEqual(document.count(text), 1, text)
        self.assertNotIn("unused", document)
        self.assertNotIn("no licence", document)

    def test_a_package_without_a_text_gets_the_general_one_and_its_authors(self):
        self.assertIn("\nbeta v0.2.0 by Author of beta (MIT): text 2\n", self.document())

    def test_a_licence_without_a_text_is_an_error(self):
        (self.root / "LICENSES/MIT.txt").unlink()
        self.write("LICENSES/MIT.txt", "x")
        with self.assertRaisesRegex(sbom.Bad, r"beta v0\.2\.0 \(Zlib\) has no licence text"):
            notices.document(LINKED.replace("beta v0.2.0\tMIT", "beta v0.2.0\tZlib"), json.dumps(self.metadata),
                             self.root / "LICENSES")


class TheWorkspace(unittest.TestCase):
    def test_lists_what_the_bill_of_materials_calls_linked(self):
        with tempfile.TemporaryDirectory() as directory:
            for script, name in [(notices, "notices.txt"), (sbom, "bill.json")]:
                subprocess.run([sys.executable, "-B", script.__file__, f"{directory}/{name}"],
                               env=os.environ | {"SOURCE_DATE_EPOCH": "1"}, check=True)
            text = Path(directory, "notices.txt").read_text(encoding="utf-8")
            bill = json.loads(Path(directory, "bill.json").read_text(encoding="utf-8"))
        linked = {relation["relatedSpdxElement"] for relation in bill["relationships"]
                  if relation["relationshipType"] == "DEPENDS_ON"}
        expected = {f"{package['name']} v{package['versionInfo']}" for package in bill["packages"]
                    if package["SPDXID"] in linked and package.get("checksums")}
        self.assertEqual(set(re.findall(r"^(\S+ v\S+) .*: texts? [\d, ]+$", text, re.M)), expected)
        numbers = {int(number) for line in re.findall(r"texts? ([\d, ]+)$", text, re.M) for number in line.split(",")}
        self.assertEqual(len(numbers), text.count("- Text "))


if __name__ == "__main__":
    unittest.main()
