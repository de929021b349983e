"""The command server: a process that has imported what commands need, and forks itself for each command.

    client      what `odf` does first: let a server run the command, if there is one
    standing    what cannot change after the start of a process, and where the server for such processes listens
    server      the process that waits, and forks
    command     the process of one command, which takes the place of the client
    starting    what a command does last: start or stop a server, according to the setting

A server belongs to one POSIX session, that of a terminal or of a script, and runs in it. So a process that it forks can
join the client's process group: it has the same controlling terminal, and Ctrl-C, Ctrl-Z and hang-ups reach it from the
kernel, like any command.

The protocol, over a Unix socket:

1. The process: it exists, with the same standing as the client.
2. The client: descriptors, and a `Request`. All signals wait until the command has begun.
3. The process: it has taken the client's place; with a descriptor for forwarding signals.
4. The client: the signals received so far. Only now does the command begin.
5. The process: how the command has ended. The client exits in the same way.

If anything fails before the fourth message, the client runs the command itself (docs/adr/0046-command-server.md).
"""

from __future__ import annotations

WORD = "command-server"
"""What a server is started with, instead of a command."""
