# Installed as /etc/profile.d/pinproxy.sh, this makes the programs of every login shell use the proxy and trust its
# authority. systemd services and desktop sessions read no profile; see /usr/share/doc/pinproxy/docs/operations.md.

if command -v pinproxy >/dev/null; then
    # On failure it prints a command that makes the shell report it.
    eval "$(pinproxy env)"
fi
