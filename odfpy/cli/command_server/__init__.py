"""The command server: a process that has imported what commands need, and forks itself for each command.

    client            runs first in `odf`: run the command on a server, if there is one
    process_identity  attributes of a process that cannot change after its start, and the address of its server
    server            the process that waits for clients and forks
    command           the process of one command, which replaces the client
    starting          runs last in a command: start or stop a server, according to the setting

A server belongs to one POSIX session (of a terminal or a script) and runs in it. So a process that it forks can
join the client's process group: it has the same controlling terminal, and the kernel delivers Ctrl-C, Ctrl-Z and
hang-ups to it, like to any command.

The protocol, over a Unix socket:

1. The process reports that it exists, and has the same identity as the client.
2. The client sends its descriptors and a `Request`. All signals are blocked until the command begins.
3. The process reports that it has replaced the client, and sends a descriptor for forwarding signals.
4. The client sends the signals received so far. Only now does the command begin.
5. The process sends the exit status of the command. The client exits with the same status.

If anything fails before the fourth message, the client runs the command itself (docs/adr/0046-command-server.md).
"""

from __future__ import annotations

WORD = "command-server"
"""The argument that starts a server instead of a command."""
