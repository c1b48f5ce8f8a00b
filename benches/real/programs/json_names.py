# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads a JSON array and counts the different names in it: json_names.py FILE."""
import json
import sys

with open(sys.argv[1]) as file:
    print(len({item["name"] for item in json.load(file)}))
