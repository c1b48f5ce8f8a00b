#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the licence notices of what is compiled into the executable and the preload library.

    notices.py FILE

For each Rust package of another project: its licence and the texts that its source carries. Equal
texts are printed once. A package without a text gets those of this repository's LICENSES that its
licence names, with its authors. Status: 0, or 3 with one line that says what failed.
"""

import json
import re
import sys
from pathlib import Path

import sbom
from sbom import Bad

LICENCE_FILE = re.compile(r"(un)?licen[cs]e|copying|copyright|notice", re.I)
HEAD = """\
tollfree's executable and its preload library contain the following packages of other projects,
under the licences and with the notices below. "A OR B" leaves the choice between A and B.

Rust's standard library (MIT OR Apache-2.0): Copyright the Rust Project contributors; texts {std}
musl, in the executable (MIT): Copyright 2005-2020 Rich Felker, et al.; text {musl}
"""


class Texts:
    """Licence texts, numbered from 1; those that differ in white space alone are one."""

    def __init__(self):
        self.texts = {}

    def number(self, text):
        return self.texts.setdefault(" ".join(text.split()), (len(self.texts) + 1, text))[0]

    def numbers(self, texts):
        return ", ".join(str(number) for number in sorted({self.number(text) for text in texts}))

    def printed(self):
        return "".join(f"\n{f' Text {number} ':-^98}\n\n{text.strip()}\n" for number, text in self.texts.values())


def read(file):
    try:
        return file.read_text(encoding="utf-8").removeprefix("\ufeff")
    except (OSError, UnicodeError) as error:
        raise Bad(f"{file}: {error}") from error


def shipped(directory):
    """The licence texts in a package's source."""
    files = (file for file in directory.rglob("*") if file.is_file() and file.suffix in ("", ".md", ".txt"))
    return [read(file) for file in sorted(files)
            if LICENCE_FILE.match(file.relative_to(directory).parts[0]) or file.parent.name == "LICENSES"]


def general(package, licence, licences):
    """The repository's texts of a licence, for a package that ships none."""
    files = [licences / f"{name}.txt" for name in re.findall(r"[\w.-]+", licence)]
    known = [read(file) for file in files if file.is_file()]
    if not known:
        raise Bad(f"{' '.join(package)} ({licence}) has no licence text")
    return known


def packages(metadata):
    """Source directory and authors of each package from elsewhere, by name and version as cargo tree prints them."""
    return {(package["name"], f"v{package['version']}"):
            (Path(package["manifest_path"]).parent, ", ".join(package["authors"]))
            for package in json.loads(metadata)["packages"] if package["source"]}


def document(linked, metadata, licences):
    """The notices, from the output of cargo tree and cargo metadata and the directory with the repository's licences."""
    inside, _ = sbom.tree(linked)
    sources = packages(metadata)
    texts, lines = Texts(), []
    standard = [read(licences / "Apache-2.0.txt"), read(licences / "MIT.txt")]
    head = HEAD.format(std=texts.numbers(standard), musl=texts.numbers(standard[1:]))
    for package in sorted(package for package in inside if package in sources):
        directory, authors = sources[package]
        own = shipped(directory)
        numbers = texts.numbers(own or general(package, inside[package], licences))
        by = "" if own or not authors else f" by {authors}"
        lines.append(f"{' '.join(package)}{by} ({inside[package]}): {'texts' if ',' in numbers else 'text'} {numbers}\n")
    return head + "".join(lines) + texts.printed()


def of_workspace():
    linked = sbom.run([*sbom.TREE, "--edges", "normal,no-proc-macro"])
    metadata = sbom.run(["cargo", "metadata", "--locked", "--format-version", "1",
                         "--filter-platform", "x86_64-unknown-linux-gnu"])
    return document(linked, metadata, Path("LICENSES"))


if __name__ == "__main__":
    sys.exit(sbom.command("notices", sys.argv[1:], of_workspace))
