"""The commands that run inside containers. The only file of the story that prints or decides the exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from mpiboot.bootstrap import config, options
from mpiboot.job.errors import UserError


def main(argv: list[str]) -> int:
    """The exit code of `mpiboot ARGV`, where ARGV starts with launch, wait, hosts or worker."""
    name, *rest = argv
    try:
        parsed = options.parse(name, rest, os.environ)
        if parsed.help:
            print(options.help_text(name), end="")
            return 0
        if name == "worker":
            from mpiboot.bootstrap import worker

            return worker.run(config.worker(parsed, os.environ), os.environ, log)
        from mpiboot.bootstrap import story

        commands = {"launch": story.launch, "wait": story.wait, "hosts": story.hosts}
        return commands[name](config.launcher(parsed, os.environ), os.environ, log)
    except UserError as error:
        from mpiboot.bootstrap import termination

        log(str(error))
        termination.write(str(error))
        return error.exit_code
    except OSError as error:  # a full disk, for one
        log(f"{name}: {error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return 2
    except KeyboardInterrupt:  # before signals are caught
        return 130


def log(text: str) -> None:
    with suppress(OSError):  # whoever read it is gone; the job goes on
        print(f"mpiboot: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
