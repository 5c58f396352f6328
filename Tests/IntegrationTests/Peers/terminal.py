"""Runs an interactive shell on its own terminal, and types into it.

    terminal.py STEPS

STEPS is a JSON list of pairs: the output to wait for, and what to type then. Prints all output.
"""

import json
import os
import pty
import re
import select
import sys
import time

steps = json.loads(sys.argv[1])
child, terminal = pty.fork()
if child == 0:
    os.environ["PS1"] = "prompt> "
    os.execv("/bin/bash", ["bash", "--norc", "--noprofile", "-i"])

shown = ""
seen = 0


def read(until):
    global shown
    ready, _, _ = select.select([terminal], [], [], max(0, until - time.monotonic()))
    if not ready:
        return False
    try:
        chunk = os.read(terminal, 65536)
    except OSError:
        return False
    shown += chunk.decode(errors="replace")
    return bool(chunk)


for wanted, typed in steps:
    until = time.monotonic() + 60
    while True:
        found = re.compile(wanted).search(shown, seen)
        if found:
            break
        if not read(until):
            print(f"timed out waiting for {wanted!r}\n{shown}")
            sys.exit(1)
    seen = found.end()
    os.write(terminal, typed.encode())
os.write(terminal, b"\x04exit\n")
until = time.monotonic() + 60
while read(until):
    pass
print(shown)
os.waitpid(child, 0)
