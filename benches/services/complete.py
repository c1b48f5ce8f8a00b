#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The load on llama.cpp's server: complete.py PORT. Has it continue the same prompt, one request after another."""

import json
import sys
import urllib.request

ASKED = json.dumps({"prompt": "a b c", "n_predict": 4, "ignore_eos": True, "cache_prompt": False}).encode()
KIND = {"Content-Type": "application/json"}


def main(port):
    while True:
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/completion", ASKED, KIND)
        with urllib.request.urlopen(asked) as answer:
            answer.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
