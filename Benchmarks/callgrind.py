"""Reads callgrind's output: instructions in total and by function, and call counts by caller."""

import collections
import re
import subprocess


class Profile:
    """The profile of some threads. Names are mangled. It requires --compress-strings=no --compress-pos=no."""

    def __init__(self):
        self.instructions = 0
        #: Instructions of the function itself, and including its callees.
        self.inclusive = collections.Counter()
        #: Call counts by caller and callee.
        self.calls = collections.Counter()

    @classmethod
    def of(cls, paths, but):
        """Reads the profile of these files. Threads that ran a function whose name contains `but` are left out."""
        whole = cls()
        for path in paths:
            thread = cls()
            thread.read(path)
            if not any(but in function for function in thread.inclusive):
                whole.instructions += thread.instructions
                whole.inclusive += thread.inclusive
                whole.calls += thread.calls
        return whole

    def read(self, path):
        function = callee = None
        awaits_cost = False
        with open(path, errors="replace") as lines:
            for line in lines:
                if line.startswith("fn="):
                    function = plain(line[3:])
                elif line.startswith("cfn="):
                    callee = plain(line[4:])
                elif line.startswith("calls="):
                    self.calls[function, callee] += int(line[6:].split()[0])
                    awaits_cost = True
                elif line[0].isdigit():
                    cost = int(line.split()[1])
                    self.inclusive[function] += cost
                    if not awaits_cost:
                        self.instructions += cost
                    awaits_cost = False

    def called(self, callees, but=()):
        """How often these functions were called, excluding calls by certain callers."""
        return sum(count for (caller, callee), count in self.calls.items() if callee in callees and caller not in but)

    def cost(self, functions):
        """Instructions per call of these functions, including callees."""
        calls = self.called(functions)
        return sum(self.inclusive[function] for function in functions) / calls if calls else None


def plain(name):
    """Removes the suffix by which callgrind tells recursion levels apart: name'2."""
    return re.sub(r"'\d+$", "", name.strip())


def named(executable, pattern):
    """The mangled names of the functions whose demangled Swift name matches the whole pattern."""
    symbols = subprocess.check_output(["nm", executable], text=True)
    mangled = [line.split()[2] for line in symbols.splitlines() if len(line.split()) == 3 and line.split()[1] in "tT"]
    said = subprocess.run(
        ["swift", "demangle", "--compact", "--simplified"],
        input="\n".join(mangled),
        text=True,
        capture_output=True,
        check=True,
    ).stdout.splitlines()
    return {name for name, text in zip(mangled, said) if re.fullmatch(pattern, text)}
