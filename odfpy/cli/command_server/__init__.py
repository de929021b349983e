"""The command server: a process that has imported what commands need, and forks itself for each of them.

    client      what `odf` does first: have a server run the command, if there is one
    standing    what a process is given once and for all, and where the server for such processes listens
    server      the process that waits, and forks
    command     the process of one command: it takes the place of the client's
    starting    what an ordinary command does last: start a server, or end it, as the setting says

A server belongs to one session of the system, that of a terminal or of a script, and runs in it. So a process that it
forks can join the client's process group: it has the same controlling terminal, and Ctrl-C, Ctrl-Z and hanging up come
to it from the system, as to any command.

What they say to each other, over a socket:

1. The process: that it is there, and was started as the client was.
2. The client: descriptors, and a `Request`. All signals wait until the command has begun.
3. The process: that it stands in the client's place, and a descriptor by which signals are sent to it.
4. The client: the signals that have come until then. Only now does the command begin.
5. The process: how the command has ended. The client ends in the same way.

Whatever goes wrong before the fourth message, the client runs the command itself (docs/adr/0046-command-server.md).
"""

from __future__ import annotations

WORD = "command-server"
"""What a server is started with, instead of a command."""
