#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of check_words.py."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check_words

# One sentence for each expression of the list, in its order.
EACH = """\
The lock belongs to the one who reclaims.
A page whose flush is pending.
It looks so many times.
Four CPUs, two of which sleep.
The reason is said.
What the design wanted and is not so.
The number stands once.
It prints more where it is asked.
No toll is left.
The anchor of a block.
Each arm runs once.
The price of a walk.
A profile by refs.
It fills small pages.
There is huge memory.
The ceiling is measured.
It is changed for good.
A new folder is made.
The table is hung in there.
The table is taken out again.
The keeper zeroes pages.
The House of the lab.
"""

CLEAN = """\
# Every memory access pays a toll
Users who reclaim, and anyone
who reads. `--source refs` and [sites](folder/price.md) are names.
```toml
anchor = 1
```
The wholesome armada forgoes folders_of and toll-model.
"""


def found_in(name, text):
    banned, allowed = check_words.read_list(check_words.LIST.read_text(encoding="utf-8"))
    return sorted(check_words.findings(Path(name), text, banned, allowed))


def lines_of(name, text):
    return [line for line, *_ in found_in(name, text)]


class Words(unittest.TestCase):
    def test_each_expression_finds_its_sentence(self):
        banned, _ = check_words.read_list(check_words.LIST.read_text(encoding="utf-8"))
        found = found_in("text.md", EACH)
        self.assertEqual([line for line, *_ in found], list(range(1, EACH.count("\n") + 1)))
        self.assertEqual([expression for _, expression, *_ in found], [each.pattern for each, _ in banned])

    def test_what_is_clean_and_what_is_a_name_passes(self):
        self.assertEqual(found_in("text.md", CLEAN), [])

    def test_output_in_a_block_without_a_tag_is_checked(self):
        self.assertEqual(lines_of("text.md", "```\n arm  elapsed\n```\n"), [2])

    def test_a_phrase_is_found_over_a_line_end(self):
        self.assertEqual(lines_of("text.md", "two of\nwhich sleep\n"), [1])
        self.assertEqual(lines_of("file.rs", "    /// two of\n    /// which sleep\n"), [1])
        self.assertEqual(lines_of("file.c", "/*\n * two of\n * which sleep\n */\n"), [2])

    def test_rust_is_checked_in_comments_and_sentences(self):
        code = "let anchor = \"anchor\"; // an anchor\nlet quote = '\"'; fn folder() {}\nsay(\"{folder}: no folder\");\n"
        self.assertEqual(lines_of("file.rs", code), [1, 3])

    def test_a_string_is_checked_past_its_continued_line(self):
        self.assertEqual(lines_of("file.rs", "say(\"two of \\\n     which sleep\");\n"), [1])

    def test_scripts_are_checked_in_comments_and_sentences(self):
        self.assertEqual(lines_of("file.sh", "for folder in a; do\n\tsay \"$folder is a folder\" # a folder\ndone\n"), [2, 2])
        self.assertEqual(lines_of("script", "#!/bin/sh\n# a folder\n"), [2])

    def test_of_a_patch_only_the_message_and_additions_are_checked(self):
        patch = "A folder\ndiff --git a b\n-a folder\n a folder\n+a folder\n"
        self.assertEqual(lines_of("001.patch", patch), [1, 5])

    def test_binary_and_unknown_files_are_left(self):
        self.assertEqual(found_in("file.bin", "a folder"), [])


class Program(unittest.TestCase):
    def run_on(self, text):
        with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()) as output:
            Path(directory, "text.md").write_text(text, encoding="utf-8")
            status = check_words.main([directory])
        return status, output.getvalue()

    def test_status_and_places(self):
        status, output = self.run_on(EACH)
        self.assertEqual(status, 1)
        self.assertIn("text.md:12: \"price\"; write ", output)
        self.assertEqual(self.run_on(CLEAN), (0, ""))

    def test_a_path_that_is_missing_is_an_error(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(check_words.main(["/does/not/exist"]), 2)


if __name__ == "__main__":
    unittest.main()
