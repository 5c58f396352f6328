"""What callgrind wrote: instructions in all and by function, and who called whom how often."""

import collections
import re
import subprocess


class Profile:
    """Of some threads. Names are the program's own, mangled. Needs --compress-strings=no --compress-pos=no."""

    def __init__(self):
        self.instructions = 0
        #: Of a function itself and of all that it calls.
        self.inclusive = collections.Counter()
        #: By caller and callee.
        self.calls = collections.Counter()

    @classmethod
    def of(cls, paths, but):
        """Of the threads that wrote these files, but those in which a function with a certain part in its name ran."""
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
        """How often these functions were called, not counting calls by some callers."""
        return sum(count for (caller, callee), count in self.calls.items() if callee in callees and caller not in but)

    def cost(self, functions):
        """Instructions of one call of these, with all that they call."""
        calls = self.called(functions)
        return sum(self.inclusive[function] for function in functions) / calls if calls else None


def plain(name):
    """callgrind tells apart how deep a function calls itself: name'2."""
    return re.sub(r"'\d+$", "", name.strip())


def named(executable, pattern):
    """The mangled names of the functions whose Swift name fits a pattern as a whole."""
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
