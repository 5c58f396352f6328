"""What a peer says: events, a line of JSON each.

A line is written in one go. print makes two of it, the text and the line's end, and what another thread, an error's
traceback or a program under test writes to the same pipe comes between them.
"""

import json
import os


def say(event, **fields):
    os.write(1, (json.dumps({"event": event, **fields}) + "\n").encode())
