# As /etc/profile.d/pinproxy.sh: the programs of every login shell use the proxy and trust its authority. Services of
# systemd and desktop sessions read no profile; /usr/share/doc/pinproxy/docs/operations.md is about them.

if command -v pinproxy >/dev/null; then
    # If that fails, it prints a line that makes the shell say so.
    eval "$(pinproxy env)"
fi
