#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the software bill of materials of the executable and the preload library, in SPDX 2.3.

    sbom.py FILE    FILE is written as JSON; SOURCE_DATE_EPOCH is the time that it states

It lists the Rust packages that are compiled into the two binaries, and those that cargo only
builds them with (procedural macros, build scripts). cargo tree knows which features, and so which
packages, a release build has; cargo metadata would add those of the tests. Status: 0, or 3 with
one line that says what failed.
"""

import datetime
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid

BINARIES = ["tollfree", "toll-preload"]
# The packages are the same for glibc and musl.
TREE = ["cargo", "tree", "--locked", "--target", "x86_64-unknown-linux-gnu", "--prefix", "depth",
        "--format", "\t{p}\t{l}", *(word for name in BINARIES for word in ["-p", name])]


class Bad(Exception):
    """One line for the user."""


def run(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Bad(f"{' '.join(command[:2])}: {error}") from error


def tree(text):
    """The licences of packages, and pairs of a package and one that it needs, of cargo tree's output."""
    licences, edges, path = {}, set(), []
    for line in text.splitlines():
        if not line:
            # Between the trees of two binaries.
            continue
        depth, identity, licence = line.removesuffix(" (*)").split("\t")
        package = tuple(identity.split()[:2])
        licences[package] = licence.replace("/", " OR ") or "NOASSERTION"
        del path[int(depth):]
        if path:
            edges.add((path[-1], package))
        path.append(package)
    return licences, edges


def checksums(lock):
    """Of each package from a registry, by name and version as cargo tree prints them."""
    return {(package["name"], f"v{package['version']}"): package["checksum"]
            for package in tomllib.loads(lock)["package"] if "checksum" in package}


def spdx_id(package):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(package))


def described(package, licence, checksum):
    """A package in SPDX's form. One from a registry is found by its purl."""
    name, version = package[0], package[1].removeprefix("v")
    entry = {
        "SPDXID": spdx_id(package),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
    }
    if checksum:
        entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": checksum}]
        entry["externalRefs"] = [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": f"pkg:cargo/{name}@{version.replace('+', '%2B')}",
        }]
    return entry


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def document(linked, built, lock, standard_library, epoch):
    """The whole document, from two outputs of cargo tree: what is linked, and all that is built."""
    inside, _ = tree(linked)
    licences, edges = tree(built)
    sums = checksums(lock)
    library = ("std", f"v{standard_library}")
    roots = [package for package in sorted(licences) if package[0] in BINARIES]
    packages = [described(package, licences[package], sums.get(package)) for package in sorted(licences)]
    packages.append(described(library, "MIT OR Apache-2.0", None))
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", spdx_id(root)) for root in roots]
    relations += [relation(spdx_id(root), "DEPENDS_ON", spdx_id(library)) for root in roots]
    for one, other in sorted(edges):
        if one in inside and other in inside:
            relations.append(relation(spdx_id(one), "DEPENDS_ON", spdx_id(other)))
        else:
            relations.append(relation(spdx_id(other), "BUILD_DEPENDENCY_OF", spdx_id(one)))
    version = next(package[1].removeprefix("v") for package in roots if package[0] == "tollfree")
    contents = json.dumps([packages, relations, epoch])
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"tollfree-{version}",
        # Unique for its contents, and the same for the same contents.
        "documentNamespace": uuid.uuid5(uuid.NAMESPACE_OID, contents).urn,
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Organization: The tollfree authors", f"Tool: tollfree-sbom-{version}"],
        },
        "packages": packages,
        "relationships": relations,
    }


def of_workspace():
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch.isdigit():
        raise Bad("SOURCE_DATE_EPOCH has to be the time of the source, in seconds")
    with open("Cargo.lock", encoding="utf-8") as file:
        lock = file.read()
    release = re.search(r"^release: (\S+)$", run(["rustc", "-vV"]), re.M)
    if not release:
        raise Bad("rustc -vV: no release")
    return document(run([*TREE, "--edges", "normal,no-proc-macro"]), run([*TREE, "--edges", "normal,build"]), lock,
                    release[1], int(epoch))


def replace(path, text):
    """Writes a file as a whole or not at all."""
    try:
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(f"{path}.new", path)
    except OSError as error:
        if os.path.exists(f"{path}.new"):
            os.remove(f"{path}.new")
        raise Bad(f"{path}: {error.strerror}") from error


def command(name, arguments, make):
    """Writes what `make` returns to the one file of the command line; returns the exit status."""
    try:
        if len(arguments) != 1:
            raise Bad(f"usage: {name}.py FILE")
        path = os.path.abspath(arguments[0])
        os.chdir(os.path.dirname(os.path.abspath(__file__)) + "/..")
        replace(path, make())
    except Bad as error:
        print(f"tollfree: {name}: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(command("sbom", sys.argv[1:], lambda: json.dumps(of_workspace(), indent=1) + "\n"))
