"""Prints a peer's events, one JSON line each.

A line is written in one call. print writes the text and the line's end separately, and output of another thread, a
traceback or a program under test could come between them.
"""

import json
import os


def say(event, **fields):
    os.write(1, (json.dumps({"event": event, **fields}) + "\n").encode())
