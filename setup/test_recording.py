#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of setup/recording.py, and of docs/tune.svg, which it made."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import recording


def screen(*outputs, columns=20):
    """The lines that a terminal shows after some outputs."""
    terminal = recording.Screen(columns)
    for output in outputs:
        terminal.write(output)
    return terminal.lines()


def texts(drawing):
    """(text, class, style) of each line of a drawing."""
    root = xml.etree.ElementTree.fromstring(drawing)
    return [(e.text, e.get("class"), e.get("style")) for e in root.iter("{http://www.w3.org/2000/svg}text")]


class TheScreen(unittest.TestCase):
    def test_a_progress_line_is_overwritten(self):
        self.assertEqual(screen("1 of 10", "\r\x1b[2K2 of 10", "\r\x1b[2Kdone\r\n"), ["done", ""])

    def test_what_is_not_overwritten_remains(self):
        self.assertEqual(screen("12345", "\rab"), ["ab345"])
        self.assertEqual(screen("12345", "\rab\x1b[K"), ["ab"])

    def test_long_lines_wrap_at_the_width(self):
        self.assertEqual(screen("abcdefgh", columns=5), ["abcde", "fgh"])
        self.assertEqual(screen("abcde\r\nf", columns=5), ["abcde", "f"])

    def test_the_cursor_moves(self):
        self.assertEqual(screen("one\r\ntwo\r\n", "\x1b[2A\x1b[2KONE\x1b[1B\x1b[6G!"), ["ONE", "two  !", ""])
        self.assertEqual(screen("one\r\ntwo\r\nthree", "\x1b[1A\r\x1b[J"), ["one", ""])

    def test_hiding_the_cursor_shows_nothing(self):
        self.assertEqual(screen("\x1b[?25la\x1b[?25h"), ["a"])

    def test_other_controls_are_refused(self):
        for control in ["\x1b[31m", "\x1b[3K", "\x07", "\x1b]0;title"]:
            with self.assertRaisesRegex(recording.Bad, "not implemented"):
                screen(control)


class Thinning(unittest.TestCase):
    def test_keeps_a_state_a_second_and_all_that_remains_on_the_screen(self):
        events = [(0.0, "begins\r\n"), *((0.1 * n, f"\r\x1b[2K{n}") for n in range(1, 41)), (4.1, "\r\x1b[2Kend\r\n")]
        thinned = recording.thinned(events)
        self.assertLess(len(thinned), 10)
        self.assertGreater(len(thinned), 5)
        self.assertEqual(screen(*(text for _, text in thinned)), ["begins", "end", ""])


class Drawing(unittest.TestCase):
    def setUp(self):
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "a.cast"

    def run_main(self, *arguments):
        """The status, and what was printed."""
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            status = recording.main(list(arguments))
        return status, out.getvalue(), err.getvalue()

    def draw(self, *events):
        header = {"version": 2, "width": 30, "height": 9, "command": "a <b> && c"}
        self.path.write_text("".join(json.dumps(line) + "\n" for line in [header, *events]), encoding="utf-8")
        return self.run_main("draw", str(self.path))

    def test_each_line_appears_and_disappears_at_its_time(self):
        status, drawing, _ = self.draw([1, "o", "step 1"], [2, "o", "\r\x1b[2Kstep 2"], [4, "o", "\r\x1b[2K<end>\r\n"])
        self.assertEqual(status, 0)
        self.assertEqual(texts(drawing), [
            ("$ a <b> && c", None, None),
            ("step 1", "passing", "animation-delay:3s;animation-duration:3s"),
            ("step 2", "passing", "animation-delay:6s;animation-duration:6s"),
            ("<end>", "late", "animation-delay:12s"),
        ])

    def test_a_command_longer_than_the_terminal_stays_one_line(self):
        self.path.write_text('{"version": 2, "width": 5, "command": "a long command"}\n[0, "o", "1234567"]\n',
                             encoding="utf-8")
        drawing = self.run_main("draw", str(self.path))[1]
        self.assertEqual([text for text, *_ in texts(drawing)], ["$ a long command", "12345", "67"])
        self.assertIn(f'width="{2 * recording.MARGIN + 16 * recording.CHARACTER:g}"', drawing)

    def test_bad_input_is_named_in_one_line(self):
        for text in ["", "{}\n", "[]\n", "text\n", '{"version": 1, "width": 9, "command": "a"}\n[0, "o", "a"]\n',
                     '{"version": 2, "width": 9, "command": "a"}\n', '{"version": 2, "width": 9, "command": "a"}\n[0]\n']:
            self.path.write_text(text, encoding="utf-8")
            status, out, err = self.run_main("draw", str(self.path))
            self.assertEqual((status, out, err.count("\n")), (3, "", 1), text)
            self.assertIn(str(self.path), err)
        self.assertEqual(self.run_main("draw", str(self.path) + "x")[0], 3)
        self.assertEqual(self.run_main("record", str(self.path), "0", "true")[0], 3)


class Recording(unittest.TestCase):
    def test_a_command_on_a_terminal_of_that_width(self):
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "a.cast"
        command = "stty size; printf 'caf\\303\\251\\n'; exit 5"
        ran = subprocess.run([sys.executable, "-B", recording.__file__, "record", str(path), "77", command],
                             stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
        columns, recorded, events = recording.read(path)
        self.assertEqual((ran.returncode, columns, recorded), (5, 77, command))
        shown = [f"{recording.ROWS} 77", "café", ""]
        self.assertEqual(screen(*(text for _, text in events)), shown)
        self.assertEqual(ran.stdout.decode().splitlines(), shown[:2])


class ThePicture(unittest.TestCase):
    def test_is_what_its_recording_gives(self):
        docs = pathlib.Path(__file__).resolve().parent.parent / "docs"
        picture = (docs / "tune.svg").read_text(encoding="utf-8")
        self.assertEqual(picture, recording.draw(docs / "tune.cast") + "\n")


if __name__ == "__main__":
    unittest.main()
