"""Points about files that should not be in an image: keys, capabilities, caches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.images.check.outcome import Answer, fault, not_checked, ok

if TYPE_CHECKING:
    from mpiboot.images.check.subject import Subject

# A line of every private key that OpenSSH reads, whatever its type.
PRIVATE_KEY = "^-----BEGIN [A-Z ]*PRIVATE KEY-----"
# The key under which the engine's archive holds what setcap wrote.
CAPABILITIES = "SCHILY.xattr.security.capability"
# An empty package database has about this size; a smaller cache is not worth a report.
CACHE_LIMIT_KB = 5000
NO_SUCH_PROGRAM = 127


def host_keys_baked(subject: Subject) -> Answer:
    return _none_of(subject, _private_keys("/etc/ssh"))


def login_keys_baked(subject: Subject) -> Answer:
    allowed = "find /root/.ssh /home/*/.ssh /etc/ssh -name 'authorized_keys*' -size +0 2>/dev/null"
    return _none_of(subject, _private_keys("/root/.ssh /home/*/.ssh"), allowed)


def file_capabilities(subject: Subject) -> Answer:
    names = "/usr/sbin/sshd ssh /usr/bin/ssh python3"  # ssh in PATH may be a script before the other
    script = f'for name in {names}; do path=$(command -v $name) && readlink -f "$path"; done; true'
    others = subject.run(script).out.splitlines()
    paths = list(dict.fromkeys([*others, *(path for program in subject.programs for path in program.files)]))
    if not paths:
        return not_checked("the image has none of these programs")
    with_capabilities = [path for path in paths if CAPABILITIES in subject.file_attributes(path)]
    return fault(f"on {', '.join(with_capabilities)}") if with_capabilities else ok(f"none on {len(paths)} programs")


def size(subject: Subject) -> Answer:
    megabytes = f"{subject.image.size / 1e6:.0f} MB"
    caches = "/var/cache/apt /var/lib/apt/lists /root/.cache/pip /var/cache/dnf /var/cache/apk"
    usage = subject.run(f"du -sk {caches} 2>/dev/null; true").out
    kilobytes = sum(int(line.split()[0]) for line in usage.splitlines())
    if kilobytes > CACHE_LIMIT_KB:
        return fault(f"{megabytes}, of which {kilobytes / 1e3:.0f} MB are package caches")
    return ok(megabytes)


def _private_keys(places: str) -> str:
    return f"grep -rlse '{PRIVATE_KEY}' {places}"


def _none_of(subject: Subject, *commands: str) -> Answer:
    """Whether none of these commands names a file."""
    results = [subject.run(command) for command in commands]
    programs = [command.split()[0] for command in commands]
    missing = [name for name, result in zip(programs, results, strict=True) if result.code == NO_SUCH_PROGRAM]
    if missing:
        return not_checked(f"the image has no {' and no '.join(missing)} to search with")
    paths = sorted(path for result in results for path in result.out.splitlines())
    return fault(", ".join(paths)) if paths else ok("none")
