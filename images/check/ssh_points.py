"""Points about sshd and ssh: whether the image has them, and their effective settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiboot.images.check.outcome import Answer, Status, fault, not_applicable, not_checked, ok

if TYPE_CHECKING:
    from mpiboot.images.check.subject import Settings, Subject

CHECKING_WORDS = frozenset({"yes", "true", "ask", "accept-new"})


def sshd(subject: Subject) -> Answer:
    if not subject.as_root.file("/usr/sbin/sshd").is_executable:
        return fault("no /usr/sbin/sshd")
    found = subject.run("/usr/sbin/sshd -V")
    # The version goes to the error stream; sshd before 9.2 prints it with a complaint about -V.
    version = next((word for word in found.one_line.replace(",", " ").split() if word.startswith("OpenSSH_")), "")
    return ok(version or "/usr/sbin/sshd")


def ssh_client(subject: Subject) -> Answer:
    found = subject.run("command -v ssh")
    return ok(found.out) if found.code == 0 else fault("no ssh in PATH")


def sshd_config(subject: Subject) -> Answer:
    if isinstance(subject.sshd, dict):
        return ok("sshd -T accepts it")
    return fault(subject.sshd)


def sshd_port(subject: Subject) -> Answer:
    settings = subject.sshd
    if not isinstance(settings, dict):
        return _no_settings("sshd")
    low = [port for port in settings["port"] if int(port) < 1024]
    return fault(f"port {', '.join(low)}") if low else ok(f"port {', '.join(settings['port'])}")


def ports_agree(subject: Subject) -> Answer:
    server, client = subject.sshd, subject.ssh
    if not isinstance(server, dict) or not isinstance(client, dict):
        return _no_settings("sshd or ssh")
    if client["port"][0] in server["port"]:
        return ok(f"both use port {client['port'][0]}")
    return fault(f"ssh connects to port {client['port'][0]}, sshd listens on {', '.join(server['port'])}")


def sshd_authorized_keys(subject: Subject) -> Answer:
    settings = subject.sshd
    if not isinstance(settings, dict):
        return _no_settings("sshd")
    files = " ".join(settings["authorizedkeysfile"]).split()
    home = {".ssh/authorized_keys", "%h/.ssh/authorized_keys"}
    return ok(files[0]) if home & set(files) else fault(f"AuthorizedKeysFile {' '.join(files)}")


def sshd_strict_modes(subject: Subject) -> Answer:
    return _expect(subject.sshd, "strictmodes", "no")


def sshd_passwords(subject: Subject) -> Answer:
    password = _expect(subject.sshd, "passwordauthentication", "no")
    return password if password.status is not Status.OK else _expect(subject.sshd, "kbdinteractiveauthentication", "no")


def sshd_penalties(subject: Subject) -> Answer:
    settings = subject.sshd
    if isinstance(settings, dict) and "persourcepenalties" not in settings:
        return not_applicable("this sshd has no such setting")
    return _expect(settings, "persourcepenalties", "no")


def client_checks(subject: Subject) -> Answer:
    settings = subject.ssh
    if not isinstance(settings, dict):
        return _no_settings("ssh")
    strict = settings.get("stricthostkeychecking", ["ask"])[0]
    if strict not in CHECKING_WORDS:
        return fault(f"StrictHostKeyChecking {strict}")
    files = " ".join(settings.get("userknownhostsfile", []))
    return fault(f"UserKnownHostsFile {files}") if files == "/dev/null" else ok(f"StrictHostKeyChecking {strict}")


def _expect(settings: Settings | str, word: str, value: str) -> Answer:
    if not isinstance(settings, dict):
        return _no_settings("sshd")
    found = settings.get(word, ["(not known)"])[0]
    return ok(f"{word} {found}") if found == value else fault(f"{word} {found.split(' ')[0]}")


def _no_settings(programs: str) -> Answer:
    return not_checked(f"mpiboot could not read the settings of {programs}")
