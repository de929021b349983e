"""Program that hides the content of a folder from another one: `python hiding.py FOLDER PROGRAM ARGUMENT...`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from odfpy.sandbox.syscalls import CLONE_NEWNS, CLONE_NEWUSER, MS_REC, MS_SLAVE, die_with_parent, mount, unshare

if __name__ == "__main__":
    folder, *command = sys.argv[1:]
    user, group = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER | CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    mount(None, "/", None, MS_REC | MS_SLAVE)
    mount("empty", folder, "tmpfs", 0)
    die_with_parent(signal.SIGKILL)  # cleared by the change of credentials
    os.execv(command[0], command)
