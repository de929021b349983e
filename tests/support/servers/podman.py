"""A stand-in for podman: a real program that accepts the same commands, and runs shell scripts instead of images.

No container engine can run where these tests run. So the tests check that we call one as documented, and that we read
its output; not that podman or docker conform. Differences: nothing is isolated, and instead of being mounted, the
folder is passed in the variables by its path on this machine.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = """#!{python} -SE
import glob, json, os, signal, subprocess, sys
home = {home!r}
command, *arguments = sys.argv[1:]
with open(f"{{home}}/calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")

def image_file(name, folder="images"):
    return f"{{home}}/{{folder}}/{{name.replace('/', '_')}}"

def run(arguments):
    rights = [option for option in arguments if option in ("--cap-drop=ALL", "--security-opt=no-new-privileges")]
    assert len(rights) == 2, "a container has no more rights than it needs"
    environment, volumes, name, entrypoint = {{"PATH": os.environ["PATH"]}}, [], None, None
    while arguments[0].startswith("-"):
        option, _, value = arguments.pop(0).partition("=")
        if option == "--env-file":
            assert os.stat(value).st_mode & 0o077 == 0
            lines = [line for line in open(value).read().split("\\n") if line]
            environment |= dict(line.split("=", 1) for line in lines)
        elif option == "--env":
            key, is_given, value = value.partition("=")
            environment[key] = value if is_given else os.environ[key]
        elif option == "--volume":
            volumes.append(value.split(":")[:2])
        elif option == "--name":
            name = value
        elif option == "--entrypoint":
            entrypoint = value
        elif option != "--rm" and option not in ("--cap-drop", "--security-opt"):
            sys.exit(f"podman: unknown option {{option}}")
    image = arguments.pop(0)
    if not os.path.exists(image_file(image)):
        print(f"Error: {{image}}: image not known", file=sys.stderr)
        sys.exit(125)
    for source, target in volumes:
        environment = {{key: value.replace(target, source) for key, value in environment.items()}}
    file = f"{{home}}/containers/{{name}}"
    program = [entrypoint] if entrypoint else [image_file(image)]
    # As with podman, the container goes on when the client is killed. If it is removed before it has begun, it ends.
    inner = 'echo $$ > "$0"; if [ -e "$0.removed" ]; then exit; fi; exec "$@"'
    container = subprocess.Popen(
        ["sh", "-c", inner, file, *program, *arguments], env=environment, start_new_session=True
    )
    code = container.wait()
    for path in glob.glob(file + "*"):
        os.unlink(path)
    sys.exit(code)

def remove(force, name):
    assert force == "--force"
    file = f"{{home}}/containers/{{name}}"
    open(file + ".removed", "w").close()
    if os.path.exists(file) and (number := open(file).read()):
        os.killpg(int(number), signal.SIGKILL)

if command == "run":
    run(arguments)
elif command == "rm":
    remove(*arguments)
elif [command, arguments[0]] == ["image", "inspect"]:
    sys.exit(0 if os.path.exists(image_file(arguments[1])) else 125)
elif command == "pull":
    if not os.path.exists(image_file(arguments[0], "registry")):
        sys.exit(f"Error: initializing source docker://{{arguments[0]}}: manifest unknown")
    os.link(image_file(arguments[0], "registry"), image_file(arguments[0]))
else:
    sys.exit(f"podman: unknown command {{command}}")
"""


@dataclass(frozen=True)
class PodmanStandIn:
    """The program and its state.

    Attributes:
        folder: folder for PATH, with nothing but the program.
    """

    folder: Path

    @classmethod
    def install(cls, folder: Path, name: str = "podman") -> PodmanStandIn:
        """Lay it down in a folder."""
        home = folder.parent / f"{folder.name}-state"
        for path in (folder, home / "images", home / "registry", home / "containers"):
            path.mkdir(parents=True, exist_ok=True)
        program = folder / name
        program.write_text(_PROGRAM.format(python=sys.executable, home=str(home)))
        program.chmod(0o755)
        return cls(folder)

    def image(self, name: str, script: str, *, local: bool = True) -> None:
        """An image: a shell script, on this machine or only in the registry."""
        path = self._home / ("images" if local else "registry") / name.replace("/", "_")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        """The recorded calls."""
        path = self._home / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def containers(self) -> list[str]:
        """Names of the existing containers."""
        names = {path.name for path in (self._home / "containers").iterdir()}
        return sorted(name for name in names if not name.endswith(".removed") and f"{name}.removed" not in names)

    @property
    def _home(self) -> Path:
        return self.folder.parent / f"{self.folder.name}-state"
