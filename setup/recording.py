#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Records a command on a terminal, and draws a recording as an animated SVG.

    recording.py record FILE COLUMNS COMMAND    runs a shell command on a new terminal of that width
    recording.py draw FILE                      prints the drawing

A recording is an asciicast of version 2: a header, and one line of JSON for each output, with its
time. The drawing plays once and remains at its last frame. A viewer without animations shows that
frame alone. Status: 0, that of the recorded command, or 3 for bad input.
"""

import codecs
import fcntl
import html
import json
import os
import pty
import re
import struct
import sys
import termios
import time

ROWS = 50
# Seconds, and frames per second.
PLAYBACK, RATE = 12.0, 8
# Pixels. A character of a monospace font of 12 pixels is about 7.2 wide.
CHARACTER, LINE, MARGIN, SIZE = 7.2, 17, 12, 12

CONTROL = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|([\x00-\x1f])")
# An escape sequence without its end.
BEGUN = re.compile(r"\x1b(\[[?0-9;]*)?\Z")

# Blanks are kept by white-space in browsers, by xml:space elsewhere. A late line is hidden by the `backwards` of an animation
# that has not begun.
STYLE = f"""\
text {{ font: {SIZE}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #1f2328 }}
rect {{ fill: #f6f8fa; stroke: #d1d9e0 }}
.passing {{ visibility: hidden }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e6edf3 }}
rect {{ fill: #151b23; stroke: #3d444d }}
}}
@media (prefers-reduced-motion: no-preference) {{
.late {{ animation: hidden 1ms backwards }}
.passing {{ animation: shown 1s }}
}}
@keyframes hidden {{ from, to {{ visibility: hidden }} }}
@keyframes shown {{ from, to {{ visibility: visible }} }}"""


class Bad(Exception):
    """One line for the user."""


class Screen:
    """The part of a terminal that a program with a progress line uses. It never scrolls."""

    def __init__(self, columns):
        self.columns = columns
        self.rows = [""]
        self.row = self.column = 0

    def write(self, text):
        end = 0
        for match in CONTROL.finditer(text):
            self.put(text[end:match.start()])
            self.control(match)
            end = match.end()
        self.put(text[end:])

    def put(self, text):
        while text:
            if self.column == self.columns:
                self.column = 0
                self.down(1)
            part, text = text[:self.columns - self.column], text[self.columns - self.column:]
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[:self.column] + part + row[self.column + len(part):]
            self.column += len(part)

    def down(self, count):
        self.row += count
        self.rows.extend([""] * (self.row + 1 - len(self.rows)))

    def control(self, match):
        private, number, letter, plain = match.groups("")
        count = int(number) if number.isdigit() else 0
        before = self.rows[self.row][:self.column]
        match (plain or letter), count:
            case "\r", _:
                self.column = 0
            case "\n", _:
                self.down(1)
            case ("h" | "l"), _ if private:
                pass
            case "A", _:
                self.row = max(0, self.row - max(count, 1))
            case "B", _:
                self.down(max(count, 1))
            case "G", _:
                self.column = max(count, 1) - 1
            case "K", 0:
                self.rows[self.row] = before
            case "K", 2:
                self.rows[self.row] = ""
            case "J", 0:
                self.rows[self.row:] = [before]
            case _:
                raise Bad(f"the terminal's control {match.group()!r} is not implemented")

    def lines(self):
        return [row.rstrip() for row in self.rows]


def read(path):
    """The width, the command and the events of a recording."""
    try:
        with open(path, encoding="utf-8") as file:
            header, *events = (json.loads(line) for line in file)
        if header["version"] != 2 or not events:
            raise ValueError("another version, or no output")
        return int(header["width"]), header["command"], [(float(at), text) for at, _, text in events]
    except OSError as error:
        raise Bad(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Bad(f"{path}: not an asciicast of version 2 with its command: {error}") from error


def frames(columns, command, events):
    """Pairs of a time of playback and the lines that the screen shows from then on."""
    screen = Screen(columns)
    screen.rows[0] = f"$ {command}"
    screen.down(1)
    shown = [(0.0, screen.lines())]
    length = events[-1][0] or 1.0
    for at, text in events:
        playback = int(at / length * PLAYBACK * RATE) / RATE
        screen.write(text)
        if playback == shown[-1][0]:
            shown.pop()
        shown.append((playback, screen.lines()))
    return shown


def spans(shown):
    """(row, line, begin, end) for each time that a row shows one line; without end (None) in the last frame."""
    for row in range(max(len(lines) for _, lines in shown)):
        begin, line = 0.0, ""
        for at, lines in shown:
            now = lines[row] if row < len(lines) else ""
            if now != line:
                if line:
                    yield row, line, begin, at
                begin, line = at, now
        if line:
            yield row, line, begin, None


def element(row, line, begin, end):
    """One line of the screen, visible from begin to end."""
    if end is not None:
        timing = f' class="passing" style="animation-delay:{begin:g}s;animation-duration:{end - begin:g}s"'
    elif begin:
        timing = f' class="late" style="animation-delay:{begin:g}s"'
    else:
        timing = ""
    return f'<text x="{MARGIN}" y="{MARGIN + SIZE + row * LINE}"{timing}>{html.escape(line, quote=False)}</text>'


def draw(path):
    columns, command, events = read(path)
    drawn = list(spans(frames(columns, command, events)))
    # The command was not typed on that terminal, and may be longer.
    width = 2 * MARGIN + max(columns, len(command) + 2) * CHARACTER
    height = 2 * MARGIN + (1 + max(row for row, *_ in drawn)) * LINE
    label = html.escape(f"A terminal that runs: {command}")
    return "\n".join([
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->",
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        f' xml:space="preserve" role="img" aria-label="{label}">',
        f"<!-- Made by setup/recording.py from {os.path.basename(path)}. -->",
        f"<style>\n{STYLE}\n</style>",
        f'<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="6"/>',
        *(element(*span) for span in drawn),
        "</svg>",
    ])


def record(path, columns, command):
    """Runs a command, shows its output, and writes the recording once the command has ended."""
    began = time.time()
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        os.execve("/bin/sh", ["sh", "-c", command], os.environ | {"TERM": "xterm"})
    events = []
    for output in outputs(terminal):
        os.write(1, output.encode())
        events.append((round(time.time() - began, 3), output))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    header = {"version": 2, "width": columns, "height": ROWS, "timestamp": int(began), "command": command}
    write(path, [header, *([at, "o", text] for at, text in thinned(events))])
    return status


def write(path, lines):
    try:
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        os.rename(f"{path}.new", path)
    except OSError as error:
        raise Bad(f"{path}: {error.strerror}") from error


def outputs(terminal):
    """What the program of a terminal prints, without cutting characters or escape sequences."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pending = ""
    while True:
        try:
            pending += decoder.decode(os.read(terminal, 65536))
        except OSError:
            # Linux reports EIO when the last process has closed its side.
            break
        begun = BEGUN.search(pending)
        whole = pending[:begun.start()] if begun else pending
        pending = pending[len(whole):]
        if whole:
            yield whole
    if pending:
        yield pending


def thinned(events):
    """Leaves out states of a progress line that the next output overwrites within a second."""
    kept = []
    for at, text in events:
        if len(kept) > 1 and overwrites(text) and overwrites(kept[-1][1]) and at - kept[-2][0] < 1:
            kept.pop()
        kept.append((at, text))
    return kept


def overwrites(text):
    """Whether an output replaces the terminal's line, and prints no other."""
    return text.startswith("\r\x1b[2K") and "\n" not in text


def main(arguments):
    try:
        match arguments:
            case ["record", path, columns, command] if columns.isdigit() and int(columns) > 0:
                return record(path, int(columns), command)
            case ["draw", path]:
                print(draw(path))
                return 0
            case _:
                raise Bad("usage: recording.py record FILE COLUMNS COMMAND | draw FILE")
    except Bad as error:
        print(f"recording: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
