#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reports phrases of setup/banned_words.txt in prose, with file and line.

    check_words.py [--count] [PATH...]    files and directories; without any, the whole tree

Prose is: text files, without code spans, tagged code blocks and link targets; in source files, comments and string
literals that contain white space. --count prints the number for each expression instead of each place.
Status: 0 nothing found, 1 something found, 2 wrong usage.
"""

import os
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "setup/banned_words.txt"
DEFAULT = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", "demo", "test", "docs", "examples", "lab",
           "benches", "setup", "schemas", "kernel", "crates", "plugins", "packaging"]
# Generated, built, or about the words themselves.
SKIPPED = {"docs/results", "plugins/user/build", "plugins/system/build", "plugins/tlb-model/build", "target",
           "setup/banned_words.txt", "setup/check_words.py", "setup/test_check_words.py"}

C_LIKE = {".c", ".h", ".cpp", ".java", ".js", ".css", ".json", ".rs"}
HASH_LIKE = {".py", ".sh", ".toml", ".packages", ".config", ".costs"}
TEXT = {".md", ".rst", ".txt", ".svg", ".html"}
TEXT_NAMES = re.compile(r"Kconfig|sysfs-.*")
HASH_NAMES = re.compile(r"Makefile")

# A character literal or a comment or a string, whichever begins first.
C_TOKEN = re.compile(r"""'(?:\\.|[^\\'\n])'|(?P<prose>//[^\n]*|/\*.*?\*/|r(?P<raw>\#*)".*?"(?P=raw)|"(?:[^"\\]|\\.)*")""",
                     re.DOTALL)
HASH_TOKEN = re.compile(r"""(?P<prose>(?:(?<=\s)|^)\#[^\n]*|\"\"\".*?\"\"\"|"(?:[^"\\]|\\.)*"|'[^'\n]*')""",
                        re.DOTALL | re.MULTILINE)
MARKER = re.compile(r"^[ \t]*(?:/\*+|\*/?|//[/!]?|#)", re.MULTILINE)
# Names, not words: code spans, link targets, variables, places in format strings.
NAMES = re.compile(r"(?<!`)`{1,2}(?!`)[^`\n]*(?:\n[^`\n]*)?`{1,2}(?!`)|\]\([^)\s]*\)|\$\{[^}\n]*\}|\$\w+|\{\w+(?::[^}\n]*)?\}")
TAGGED_BLOCK = re.compile(r"^```\w+\n.*?^```", re.DOTALL | re.MULTILINE)


def read_list(text):
    """The banned expressions with what to write instead, and the allowed ones."""
    banned, allowed = [], []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("allow "):
            allowed.append(compiled(line.removeprefix("allow ")))
        else:
            expression, instead = line.split(" => ")
            banned.append((compiled(expression), instead))
    return banned, allowed


def compiled(expression):
    return re.compile(expression.replace(" ", r"\s+"), re.IGNORECASE)


def blank(text, filler):
    """As many characters, none of them a word; white space stays."""
    return re.sub(r"\S", filler, text)


def without(expression, text, filler="\0"):
    return expression.sub(lambda match: blank(match[0], filler), text)


def tokens(text, token):
    """Comments, and strings of several words; the rest blanked, so that positions stay."""
    kept, end = [], 0
    for match in token.finditer(text):
        piece = match["prose"]
        if piece is None or (piece[0] in "\"'r" and not re.search(r"\s", piece.strip("\"' \n"))):
            continue
        kept.append(blank(text[end:match.start()], "\0"))
        kept.append(piece.replace("\\\n", " \n").replace("\\n", "\0\0"))
        end = match.end()
    return "".join(kept) + blank(text[end:], "\0")


def added_lines(patch):
    """The message of a patch, and what it adds."""
    message, diff, changes = patch.partition("diff --git ")
    lines = [line if line.startswith("+") else blank(line, "\0") for line in (diff + changes).split("\n")]
    return message + "\n".join(lines)


def prose(path, text):
    """The prose of a file at its positions; None where there is none to check."""
    if path.suffix == ".patch":
        text = added_lines(text)
    elif path.suffix in C_LIKE:
        text = tokens(text, C_TOKEN)
    elif path.suffix in HASH_LIKE or HASH_NAMES.fullmatch(path.name) or text.startswith("#!"):
        text = tokens(text, HASH_TOKEN)
    elif path.suffix in TEXT or TEXT_NAMES.fullmatch(path.name):
        text = without(TAGGED_BLOCK, text)
    else:
        return None
    return without(NAMES, without(MARKER, text, " "))


def findings(path, text, banned, allowed):
    """(line, expression, what was found, what to write) for each place."""
    text = prose(path, text)
    if text is None:
        return
    for expression in allowed:
        text = without(expression, text)
    for expression, instead in banned:
        for match in expression.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, expression.pattern, " ".join(match[0].split()), instead


def files(paths):
    for path in paths:
        if path.is_file():
            yield path
        for directory, below, names in os.walk(path):
            below[:] = sorted(name for name in below if not skipped(Path(directory, name)))
            yield from (Path(directory, name) for name in sorted(names) if not skipped(Path(directory, name)))


def skipped(path):
    return path.name == "__pycache__" or os.path.relpath(path, ROOT) in SKIPPED


def main(arguments):
    counting = "--count" in arguments
    paths = [Path(argument) for argument in arguments if argument != "--count"]
    missing = [path for path in paths if not path.exists()]
    if missing or any(str(path).startswith("-") for path in paths):
        print(__doc__ if not missing else f"{missing[0]}: no such file or directory", file=sys.stderr)
        return 2
    banned, allowed = read_list(LIST.read_text(encoding="utf-8"))
    counts = Counter()
    for path in files(paths or [ROOT / name for name in DEFAULT if (ROOT / name).exists()]):
        text = path.read_bytes().decode("utf-8", errors="replace")
        for line, expression, found, instead in sorted(findings(path, text, banned, allowed)):
            counts[expression] += 1
            if not counting:
                print(f"{os.path.relpath(path)}:{line}: \"{found}\"; write {instead}")
    if counting:
        for expression, number in counts.most_common():
            print(f"{number:6} {expression}")
    if counts:
        print(f"{sum(counts.values())} banned phrases; setup/banned_words.txt has the list")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
