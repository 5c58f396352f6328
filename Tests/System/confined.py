"""Runs a program under the unit's restrictions (systemd.exec(5)), without systemd.

confined.py UNIT PROGRAM ARGUMENTS...

A call that the unit would answer with EPERM kills the program (SIGSYS), so that it is noticed. Applied are
SystemCallFilter, RestrictAddressFamilies, RestrictNamespaces, RestrictSUIDSGID, LockPersonality and
MemoryDenyWriteExecute, with the groups of this machine's systemd.
"""

import os
import socket
import subprocess
import sys

from seccomp import ALLOW, EQ, ERRNO, KILL_PROCESS, MASKED_EQ, Arg, SyscallFilter


def lines(unit, key):
    return [line.split("=", 1)[1].strip() for line in open(unit) if line.startswith(key + "=")]


def members(name):
    if not name.startswith("@"):
        return {name}
    listing = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", name], capture_output=True, text=True, check=True
    ).stdout
    names = [line.strip() for line in listing.splitlines()[1:]]
    return set().union(*(members(name) for name in names if name and not name.startswith("#")))


def allowed(unit):
    """The allowed calls. The first line says whether the lines are an allow list."""
    calls = set()
    for line in lines(unit, "SystemCallFilter"):
        named = set().union(*(members(name) for name in line.lstrip("~").split()))
        calls = calls - named if line.startswith("~") else calls | named
    return calls | members("@default")


def confine(unit):
    calls = SyscallFilter(defaction=KILL_PROCESS)
    judged = {
        "socket",
        "mmap",
        "mprotect",
        "pkey_mprotect",
        "personality",
        "clone",
        "clone3",
        "unshare",
        "setns",
        "chmod",
        "fchmod",
        "fchmodat",
        "open",
        "openat",
        "mknod",
        "mknodat",
        "creat",
    }
    for call in sorted(allowed(unit)):
        try:
            if call not in judged:
                calls.add_rule(ALLOW, call)
        except RuntimeError:
            pass  # Not on this architecture.
    for family in " ".join(lines(unit, "RestrictAddressFamilies")).split():
        calls.add_rule(ALLOW, "socket", Arg(0, EQ, getattr(socket, family)))
    # MemoryDenyWriteExecute
    both, execute = 0x2 | 0x4, 0x4
    for protection in range(8):
        if protection & both != both:
            calls.add_rule(ALLOW, "mmap", Arg(2, EQ, protection))
        if not protection & execute:
            calls.add_rule(ALLOW, "mprotect", Arg(2, EQ, protection))
    # RestrictNamespaces; clone3 hides its flags, so systemd has programs fall back to clone.
    namespaces = 0x7E020080
    calls.add_rule(ALLOW, "clone", Arg(0, MASKED_EQ, namespaces, 0))
    calls.add_rule(ERRNO(38), "clone3")
    # LockPersonality
    calls.add_rule(ALLOW, "personality", Arg(0, EQ, 0xFFFFFFFF))
    # RestrictSUIDSGID: set-id bits of created or changed files
    bits = 0o6000
    for call, mode in [
        ("chmod", 1),
        ("fchmod", 1),
        ("fchmodat", 2),
        ("open", 2),
        ("openat", 3),
        ("mknod", 1),
        ("mknodat", 2),
        ("creat", 1),
    ]:
        calls.add_rule(ALLOW, call, Arg(mode, MASKED_EQ, bits, 0))
    calls.load()


confine(sys.argv[1])
os.execvp(sys.argv[2], sys.argv[2:])
