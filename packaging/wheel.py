#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Packs the programs and licences of a staged installation as a wheel: wheel.py STAGE VERSION FILE

pip copies scripts/ to bin/ and data/ to the root of the environment, so that tollfree finds ../lib/tollfree from its own
directory. Manual pages and completions are left out: few environments are searched for them, pip leaves their directories
behind, and `tollfree man` and `tollfree completions` print them. The times of all files are SOURCE_DATE_EPOCH, so equal
stages make equal wheels.
"""

import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

TAG = "py3-none-manylinux_2_28_x86_64"
WHEEL = f"""Wheel-Version: 1.0
Generator: tollfree
Root-Is-Purelib: false
Tag: {TAG}
"""
METADATA = """Metadata-Version: 2.4
Name: tollfree
Version: {version}
Summary: Finds out for which memory of a program huge pages pay
License-Expression: (MIT OR Apache-2.0) AND GPL-2.0-only
{licences}Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development
Description-Content-Type: text/plain

tollfree observes where a program misses the TLB, estimates what huge pages would save and cost there, applies those
that pay, and proves the result by interleaved runs, with a confidence interval. It needs Linux 6.1 or later on x86-64;
`tollfree doctor` lists what a machine has. The command is a compiled program: it uses no Python.
"""


def members(stage, version):
    """Yields the name in the wheel and the file of each staged file."""
    root = stage / "usr"
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        name = file.relative_to(root)
        if name.parts[0] == "bin":
            yield f"tollfree-{version}.data/scripts/{name.name}", file
        elif name.parts[0] == "lib":
            yield f"tollfree-{version}.data/data/{name}", file
        elif name.parts[:2] == ("share", "doc") and name.suffix == ".txt":
            yield f"tollfree-{version}.dist-info/licenses/{name.name}", file


def entry(name, mode):
    """A member of a zip file that depends on no clock."""
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    info = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (0o100000 | mode) << 16
    return info


def record(name, content):
    """The line of RECORD for a file."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def pack(stage, version, output):
    """Writes the wheel; its metadata is last, as the format recommends."""
    information = f"tollfree-{version}.dist-info"
    files = list(members(stage, version))
    licences = [name.rsplit("/", 1)[1] for name, _ in files if name.startswith(f"{information}/licenses/")]
    metadata = METADATA.format(version=version, licences="".join(f"License-File: {name}\n" for name in licences))
    contents = [(name, file.read_bytes(), file.stat().st_mode & 0o777) for name, file in files]
    contents.sort(key=lambda content: (content[0].startswith(information), content[0]))
    contents += [(f"{information}/WHEEL", WHEEL.encode(), 0o644), (f"{information}/METADATA", metadata.encode(), 0o644)]
    lines = "".join(record(name, content) for name, content, _ in contents)
    record_file = f"{information}/RECORD"
    contents.append((record_file, f"{lines}{record_file},,\n".encode(), 0o644))
    with zipfile.ZipFile(output, "w") as wheel:
        for name, content, mode in contents:
            wheel.writestr(entry(name, mode), content, compresslevel=9)


if __name__ == "__main__":
    pack(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
