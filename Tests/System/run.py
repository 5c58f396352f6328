"""Tests the Debian package on a booted Debian. Each line says PASS, FAIL or SKIP; the exit status is 1 if a case
failed.

run.py RELEASE PACKAGE.deb [LATER.deb]

With the next release's package as well, the machine is upgraded to that release.
"""

import sys
import traceback

import machine as machines
import steps

# The order matters, since each case uses the machine as the previous ones left it.
import service, restarts, adversity, shortage, sockets, signing, instances, leaving  # noqa: E401, F401
import upgrade


def main(release, package, later=None):
    reason = machines.missing(release)
    if reason:
        print(f"SKIP  the system test: {reason}")
        return 0
    passed = failed = 0
    cases = upgrade.CASES if later else steps.CASES
    with machines.machine(release, package, upgrade.prepare(later) if later else None) as machine:
        for function in cases:
            name = function.__name__.replace("_", " ")
            try:
                said = function(machine)
                passed += 1
                print(f"PASS  {name}" + (f" ({said})" if said else ""), flush=True)
            except steps.Skipped as reason:
                print(f"SKIP  {name}: {reason}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAIL  {name}\n      {error}", flush=True)
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
                if function is cases[0]:
                    break  # The remaining cases need the installed package.
        if failed:
            print(machine("journalctl --unit pinproxy --no-pager -n 60").stdout)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
