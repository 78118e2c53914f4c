"""Build programs from Go modules, once a machine. An interrupted build leaves no incomplete program."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from debian import log

from . import golang
from .errors import ClusterError
from .home import CACHE
from .lock import only_one

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .versions import Programs

LOGS_EVERY = 20.0  # seconds between two lines of progress


def provide(*wanted: Programs) -> None:
    """Build the programs that are missing. A second process waits for the first."""
    if not any(programs.missing() for programs in wanted):
        return
    with only_one(CACHE / "build.lock", f"process {os.getpid()} builds Kubernetes"):
        go = golang.find()
        for programs in wanted:
            if programs.missing():
                _Build(programs, go).run()


def tidy() -> None:
    """Remove Go's downloads and compiled packages, up to 8 GB. The programs stay."""
    with only_one(CACHE / "build.lock", f"process {os.getpid()} removes what builds left"):
        shutil.rmtree(CACHE / "build", ignore_errors=True)


class _Build:
    """One `go build` in a temporary module."""

    def __init__(self, programs: Programs, go: Path) -> None:
        self.programs, self.go = programs, go
        self.began = time.monotonic()
        self.module = CACHE / "build" / programs.module.replace("/", "-")
        self.output = self.module / "out"
        # Caches of our own can be removed as a whole. The user's Go caches are not touched.
        self.environment = {
            **os.environ, "GOPATH": str(CACHE / "build" / "go"), "GOCACHE": str(CACHE / "build" / "compiled"),
            "GOMODCACHE": str(CACHE / "build" / "modules"), "GOBIN": "", "GOTOOLCHAIN": "local", "GOWORK": "off",
            "GOFLAGS": "-mod=mod -modcacherw -buildvcs=false", "CGO_ENABLED": "0"}

    def run(self) -> None:
        """Build the programs and put each into the cache by one rename."""
        log(f"building {self.programs} from Go modules: about {self.programs.takes} on two cores, only once")
        shutil.rmtree(self.output, ignore_errors=True)
        self.output.mkdir(parents=True)
        self._write_module()
        packages = [f"{self.programs.module}/{package}".rstrip("/") for package in self.programs.packages.values()]
        total = len(self._go("list", "-deps", *packages).split())
        command = ["build", "-v", "-trimpath", f"-ldflags={self._link_flags()}", "-o", f"{self.output}/", *packages]
        self._follow(command, total)
        home = CACHE / "programs" / self.programs.version
        home.mkdir(parents=True, exist_ok=True)
        for name, package in self.programs.packages.items():
            (self.output / (package.rpartition("/")[2] or name)).replace(home / name)
        self._keep_files(home)
        log(f"built {self.programs} in {time.monotonic() - self.began:.0f} s")

    def _keep_files(self, home: Path) -> None:
        if self.programs.files:
            for path in self.programs.files:
                shutil.copy(f"{self._downloaded()['Dir']}/{path}", home)

    def _downloaded(self) -> dict[str, str]:
        """Where the module's files are."""
        module = f"{self.programs.module}@{self.programs.version}"
        found: dict[str, str] = json.loads(self._go("mod", "download", "-json", module))
        return found

    def _write_module(self) -> None:
        lines = ["module cluster", "go 1.24.0", f"require {self.programs.module} {self.programs.version}"]
        (self.module / "go.mod").write_text("module cluster\n", encoding="ascii")
        module = self._downloaded()
        lines += (f"replace {name} => {name} {version}" for name, version in self._replaced(module["GoMod"]).items())
        # Not every version has an entry in the checksum database: the module's own list has those that it needs.
        shutil.copy(f"{module['Dir']}/go.sum", self.module)
        (self.module / "go.mod").write_text("\n".join(lines) + "\n", encoding="ascii")

    def _replaced(self, path: str) -> Mapping[str, str]:
        """The `replace` lines of the module, which count only in a main module.

        The parts of Kubernetes are folders in its repository, and modules of version v0.X.Y for us.
        """
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 (a path that Go prints)
            lines = re.findall(r"^(?:replace)?\s*(\S+)(?: v\S+)? => (\S+)(?: (v\S+))?", file.read(), re.MULTILINE)
        part = "v0" + self.programs.version.removeprefix("v1")
        found = {name: version or part for name, other, version in lines if other in (name, f"./staging/src/{name}")}
        return {**found, **self.programs.replaced}

    def _link_flags(self) -> str:
        if self.programs.module != "k8s.io/kubernetes":
            return "-s -w"
        major, minor, _ = self.programs.version.removeprefix("v").split(".")
        values = {"gitVersion": self.programs.version, "gitMajor": major, "gitMinor": minor}
        return " ".join(["-s -w", *(f"-X k8s.io/component-base/version.{key}={each}" for key, each in values.items())])

    def _command(self, *arguments: str) -> list[str]:
        return ["nice", "-n", "15", str(self.go), *arguments]  # the user may work on this machine meanwhile

    def _go(self, *arguments: str) -> str:
        done = subprocess.run(self._command(*arguments), text=True, capture_output=True, cwd=self.module,
                              env=self.environment)
        if done.returncode:
            raise self._failure(arguments, done.stderr or done.stdout)
        return done.stdout

    def _follow(self, arguments: list[str], total: int) -> None:
        """Run a build that prints each package it compiled (-v), and print the progress every 20 s."""
        build = subprocess.Popen(self._command(*arguments), text=True, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, cwd=self.module, env=self.environment)
        assert build.stderr is not None
        last, logged, compiled = [""], time.monotonic(), 0
        try:
            for line in build.stderr:
                last = [*last[-20:], line]
                compiled += 1
                if time.monotonic() - logged > LOGS_EVERY:
                    logged = time.monotonic()
                    log(f"  {compiled} of up to {total} packages after {logged - self.began:.0f} s")
        except BaseException:
            build.terminate()
            raise
        finally:
            build.wait()
        if build.returncode:
            raise self._failure(arguments, "".join(last))

    def _failure(self, arguments: list[str] | tuple[str, ...], output: str) -> ClusterError:
        return ClusterError(f"building {self.programs} failed at `go {arguments[0]}`; its output:\n{output[-2000:]}\n"
                            "compiled packages are kept: the same command continues from there")
