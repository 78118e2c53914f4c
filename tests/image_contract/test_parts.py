"""The parts that decide without touching anything: the contract itself, parsing, causes, reports."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from mpiboot.images.check import (
    accounts,
    causes,
    contract_page,
    file_points,
    mpi_points,
    programs,
    report,
    runtime,
    static_points,
    worker,
)
from mpiboot.images.check.host import Backend, Host
from mpiboot.images.check.image import Image
from mpiboot.images.check.outcome import Answer, Finding, Report, Status, Trial, fault, finding, not_checked, ok
from mpiboot.images.check.profiles import run_as
from mpiboot.images.check.programs import Program
from mpiboot.images.check.progress import Progress
from mpiboot.images.check.subject import Result
from mpiboot.images.contract import LIVE, POINTS, STATIC, Profile
from mpiboot.job import mpi
from mpiboot.job.plan.sshd import OUR_ENTRYPOINT

if TYPE_CHECKING:
    from mpiboot.images.check.subject import Subject

REPOSITORY = Path(__file__).resolve().parents[2]


def image(entrypoint: tuple[str, ...] = (), user: str = "user") -> Image:
    return Image("some/image:1", "sha256:" + "a" * 64, 123_400_000, "amd64", user, entrypoint, (), {}, {})


def trial(profile: Profile, *, fails: str = "", causing: tuple[str, ...] = ()) -> Trial:
    steps = [finding(point.id, fault("no") if point.id == fails else ok("yes")) for point in LIVE]
    return Trial(profile, "12345:0", tuple(steps), tuple(POINTS[point_id] for point_id in causing))


def a_report(*trials: Trial, faults: tuple[str, ...] = ()) -> Report:
    answers: list[tuple[str, Answer]] = [(p.id, fault("bad") if p.id in faults else ok("good")) for p in STATIC]
    others = [trial(profile) for profile in Profile if profile not in {t.profile for t in trials}]
    found: tuple[Finding, ...] = tuple(finding(point_id, answer) for point_id, answer in answers)
    return Report(image(), found, tuple(sorted([*trials, *others], key=lambda t: t.profile)), 5.0)


# -- the contract --


def test_every_point_has_its_own_identifier() -> None:
    assert len(POINTS) == len(STATIC) + len(LIVE)


def test_every_static_point_has_a_check_and_no_check_lacks_a_point() -> None:
    assert list(static_points.CHECKS) == [point.id for point in STATIC]


def test_page_is_the_contract() -> None:
    on_disk = (REPOSITORY / "docs" / "image-contract.md").read_text()
    assert on_disk == contract_page.page(), "run: python -m mpiboot.images.check.contract_page > docs/image-contract.md"


def test_profiles_read_as_on_the_command_line() -> None:
    assert [Profile.of(profile.word) for profile in Profile] == list(Profile)
    assert [profile.word for profile in Profile] == ["own", "any-uid", "hardened"]


def test_keys_are_not_looked_for_without_the_programs_for_it() -> None:
    class Bare:
        def run(self, command: str) -> Result:
            return Result(127, "", f"sh: {command.split(maxsplit=1)[0]}: not found")

    bare = cast("Subject", Bare())
    assert file_points.host_keys_baked(bare) == not_checked("the image has no grep to search with")
    assert file_points.login_keys_baked(bare) == not_checked("the image has no grep and no find to search with")


def test_point_is_not_checked_where_the_image_lacks_what_a_module_of_testinfra_calls() -> None:
    class Bare(Backend):
        def run(self, command: str, *_args: str, **_options: object) -> object:
            return self.result(127, command.encode(), b"", b"/bin/sh: uname: not found")

    class Subject:
        as_root = Host(Bare("none"))
        account = accounts.Account("root", 0, "/root", "/bin/sh")
        cutoff = type("Open", (), {"why": None})

    answer = static_points._answer(cast("Any", Subject()), "home")
    assert answer == not_checked("`uname -s` failed in the image: /bin/sh: uname: not found")


def test_hardened_takes_everything_away() -> None:
    options = run_as(Profile.HARDENED, 12345).options
    assert options["cap_drop"] == ["ALL"]
    assert options["security_opt"] == ["no-new-privileges"]
    assert options["read_only"] is True
    assert run_as(Profile.OWN, 12345).user is None


# -- how a worker starts --


def test_our_entrypoint_starts_the_worker_itself() -> None:
    assert worker.entrypoint(image((OUR_ENTRYPOINT,)), "/home/mpiuser/.ssh") is None


def test_other_images_get_the_jobs_command_with_the_jobs_host_key() -> None:
    command = worker.entrypoint(image(("/docker-entrypoint.sh",)), "/home/a b/.ssh")
    assert command is not None
    assert command[:2] == ["/bin/sh", "-c"]
    assert "exec /usr/sbin/sshd -De" in command[2]
    assert "key='/home/a b/.ssh/id_rsa'" in command[2]
    assert 'HostKey=\\"$key\\"' in command[2]


def test_worker_without_sshd_names_a_command_with_the_image_under_check() -> None:
    command = worker.entrypoint(image(("/docker-entrypoint.sh",)), "/root/.ssh")
    assert command is not None
    assert "add it with: mpiboot images build openmpi --base some/image:1 --tag TAG" in command[2]


# -- accounts --

PASSWD = """\
root:x:0:0:root:/root:/bin/bash

broken line
halved:x:77
letters:x:1x:1::/:/bin/sh
user:x:1000:1000::/home/user:/bin/bash
taken:x:12345:0::/:/bin/sh
"""


@pytest.mark.parametrize(
    ("user", "home"),
    [("", "/root"), ("0", "/root"), ("root:root", "/root"), ("user", "/home/user"), ("1000:0", "/home/user")],
)
def test_user_of_a_dockerfile_is_found(user: str, home: str) -> None:
    account = accounts.of_user(user, accounts.parse(PASSWD))
    assert account is not None
    assert account.home == home


@pytest.mark.parametrize("user", ["nobody", "4711", "halved", "letters", "77"])
def test_user_that_is_not_in_the_file_has_no_account(user: str) -> None:
    assert accounts.of_user(user, accounts.parse(PASSWD)) is None


def test_unknown_uid_belongs_to_no_account() -> None:
    assert accounts.unknown_uid(accounts.parse("")) == 12345
    assert accounts.unknown_uid(accounts.parse(PASSWD)) == 12346


# -- runtimes --


@pytest.mark.parametrize(
    ("said", "shown", "daemon"),
    [
        ("mpirun (Open MPI) 5.0.7\n\nReport bugs to", "Open MPI 5.0.7", "prted"),
        ("mpirun (Open MPI) 4.1.4\n", "Open MPI 4.1.4", "orted"),
        ("HYDRA build details:\n    Version:             4.2.1\n", "MPICH 4.2.1", "hydra_pmi_proxy"),
        (
            "Intel(R) MPI Library for Linux* OS, Version 2021.19 Build 20260301 (id: 5f4d)\n",
            "Intel MPI 2021.19",
            "hydra_bstrap_proxy",
        ),
    ],
)
def test_runtime_is_known_by_its_version_text(said: str, shown: str, daemon: str) -> None:
    found = mpi.identify(said)
    assert found is not None
    assert (str(found), found.daemons[0]) == (shown, daemon)


@pytest.mark.parametrize("said", ["", "mpirun: not found", "slurm 23.02"])
def test_unknown_runtime_is_none(said: str) -> None:
    assert mpi.identify(said) is None


def test_hostfiles_are_written_in_both_forms() -> None:
    files = runtime.hostfiles(["a", "b"], 2)
    assert files == {"slots": "a slots=2\nb slots=2\n", "colons": "a:2\nb:2\n"}
    commands = {row.title: runtime.command(row, 4) for row in mpi.RUNTIMES}
    assert commands["Open MPI"].endswith("--hostfile /mpiboot-check/slots")
    assert commands["MPICH"] == commands["Intel MPI"] == "mpirun -n 4 -f /mpiboot-check/colons"


# -- programs --


@pytest.mark.parametrize(
    ("script", "started"),
    [
        ('#!/bin/sh\nexec /opt/mpich/bin/mpirun "$@"\n', "/opt/mpich/bin/mpirun"),
        ('#!/bin/bash\nexport I_MPI_ROOT="${I_MPI_ROOT:-/opt/i}"\nexec "/opt/i/mpirun" -q "$@"\n', "/opt/i/mpirun"),
        ('#! /usr/bin/env bash\nif a; then\n mpiexec.slurm "$@"\nelse\n mpiexec.hydra "$@" <&0\nfi', "mpiexec.hydra"),
        ('#!/bin/sh\nexec env TMPDIR=/var/tmp /opt/x/orterun ${@}\n', "/opt/x/orterun"),
        ('#!/bin/sh\n# exec /opt/mpich/bin/mpirun "$@"\n', None),
        ('#!/bin/sh\nexec "$(dirname "$0")/../bin/mpirun" "$@"\n', None),
        ('#!/bin/sh\nset -- "$@"\necho "$@"\nexec "$MPI" "$@"\n', None),
        ('#!/bin/sh\nexport LD_LIBRARY_PATH=/opt/x/lib\nexec /opt/x/bin/mpirun "$@"\n', None),
        ('#!/usr/bin/python3\nos.execv("/opt/x/mpirun", "$@")\n', None),
        ("", None),
    ],
)
def test_program_that_a_script_starts_is_found(script: str, started: str | None) -> None:
    assert programs.started_by(script) == started


FILES = {
    "/bin/mpirun": b'#!/bin/sh\nexec /opt/bin/mpirun "$@"\n',
    "/opt/bin/mpirun": b'#!/bin/sh\nmpiexec.hydra "$@"\n',
    "/bin/mpiexec.hydra": b"\x7fELF and more",
    "/bin/mpi-loop": b'#!/bin/sh\nexec mpi-loop "$@"\n',
    "/bin/mpi-lost": b'#!/bin/sh\nexec mpi-nowhere "$@"\n',
}


@pytest.mark.parametrize(
    ("name", "files", "code"),
    [
        ("mpirun", 3, "/bin/mpiexec.hydra"),
        ("mpiexec.hydra", 1, "/bin/mpiexec.hydra"),
        ("mpi-loop", programs.MAX_PROGRAMS, None),
        ("mpi-lost", 1, None),
        ("mpi-nowhere", 0, None),
    ],
)
def test_program_is_followed_to_machine_code(name: str, files: int, code: str | None) -> None:
    def locate(called: str) -> str:
        path = called if called.startswith("/") else f"/bin/{called}"
        return path if path in FILES else ""

    program = programs.follow(name, locate, FILES.__getitem__)
    assert (len(program.files), program.code) == (files, code)


FOUND = "\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n"
MPIRUN, PRTED = Program("mpirun", ("/stub", "/m"), "/m"), Program("prted", ("/p",), "/p")


@pytest.mark.parametrize(
    ("program", "said", "status", "saw"),
    [
        (PRTED, Result(0, FOUND, ""), Status.OK, "all found, of /m, /p"),
        (PRTED, Result(0, "\tstatically linked", ""), Status.OK, "/p"),
        (PRTED, Result(0, f"{FOUND}\tlibprrte.so.3 => not found", ""), Status.FAULT, "not found: libprrte.so.3"),
        (PRTED, Result(127, "Error loading shared library libx.so.1: No such file", ""), Status.FAULT, "libx.so.1"),
        (PRTED, Result(1, "/p: libc.so.6: version `GLIBC_9' not found (required by /p)", ""), Status.FAULT, "GLIBC_9"),
        (PRTED, Result(0, "", ""), Status.NOT_CHECKED, "prted"),
        (PRTED, Result(127, "env: '/usr/bin/ldd': No such file or directory", ""), Status.NOT_CHECKED, "prted"),
        (Program("prted", ("/script",), None), None, Status.NOT_CHECKED, "prted"),
    ],
)
def test_libraries_are_there_only_if_the_loader_says_so(
    program: Program, said: Result | None, status: Status, saw: str
) -> None:
    answers = {"/m": Result(0, FOUND, "")} | ({"/p": said} if said else {})
    answer = mpi_points.judge_libraries((MPIRUN, program), answers)
    assert (answer.status, saw in answer.observed) == (status, True), answer.observed


# -- causes --


@pytest.mark.parametrize(
    ("said", "point"),
    [
        ("/bin/sh: 1: exec: /usr/sbin/sshd: Operation not permitted", "file-capabilities"),
        ("/bin/sh: 1: exec: /usr/sbin/sshd: not found", "sshd"),
        ("No user exists for uid 12345", "any-uid-name"),
        ("Unable to load host key: /root/.ssh/id_rsa", "home"),
        ("ssh: connect to host w port 2222: Connection refused", "ports-agree"),
        ("user@w: Permission denied (publickey).", "sshd-authorized-keys"),
        ("bash: line 1: prted: command not found", "live-path"),
        ("prted: error while loading shared libraries: libprrte.so.3: cannot open shared object file", "libraries"),
        ("/etc/ssh/sshd_config: line 9: Bad configuration option: PortNumber", "sshd-config"),
        ("This account is currently not available.", "login-shell"),
        ("Bind to port 22 on 0.0.0.0 failed: Permission denied.", "sshd-port"),
        ("Authentication refused: bad ownership or modes for directory /home/user/.ssh", "sshd-strict-modes"),
    ],
)
def test_sayings_lead_to_their_point(said: str, point: str) -> None:
    assert point in [cause.id for cause in causes.explain(said)]


def test_unknown_saying_explains_nothing() -> None:
    assert causes.explain("Segmentation fault") == ()


def test_known_faults_come_next_where_the_profile_needs_them() -> None:
    points = [POINTS[name] for name in ("file-capabilities", "any-uid-name", "user", "labels")]
    assert [p.id for p in causes.next_faults(Profile.ANY_UID, points)] == ["any-uid-name"]
    assert [p.id for p in causes.next_faults(Profile.HARDENED, points)] == ["file-capabilities", "any-uid-name"]


# -- reports --


def test_image_without_faults_fulfils_everything() -> None:
    found = a_report()
    assert all(found.fulfils(profile) for profile in Profile)
    assert report.verdict(found, Profile.HARDENED) == "some/image:1 fulfils the contract for 'hardened' (5.0 s)"


@pytest.mark.parametrize(
    ("fault_id", "fulfilled"),
    [
        ("sshd", []),
        ("any-uid-name", [Profile.OWN]),
        ("host-keys-baked", [Profile.OWN, Profile.ANY_UID]),
        ("labels", list(Profile)),
    ],
)
def test_fault_counts_from_the_profile_that_needs_the_point(fault_id: str, fulfilled: list[Profile]) -> None:
    found = a_report(faults=(fault_id,))
    assert [profile for profile in Profile if found.fulfils(profile)] == fulfilled


def test_report_of_an_unfit_image_begins_with_what_is_wrong_and_what_to_do() -> None:
    first = report.text(a_report(faults=("mpirun", "sshd", "labels")), Profile.OWN).splitlines()[0]
    assert first == f"some/image:1 cannot run MPI jobs as 'own': bad; {POINTS['sshd'].fix}"
    live = report.text(a_report(trial(Profile.OWN, fails="live-ssh")), Profile.OWN).splitlines()[0]
    assert live.startswith("some/image:1 cannot run MPI jobs as 'own': no; ")


def test_report_of_a_fit_image_begins_with_the_image() -> None:
    assert report.text(a_report(faults=("labels", "user")), Profile.OWN).startswith("some/image:1: 123 MB, ")


@pytest.mark.parametrize("late", ["mpirun", "python"])  # python is advice: no fault that stops a job
def test_image_that_was_not_looked_at_to_the_end_fulfils_nothing(late: str) -> None:
    why = "no end after 60 s (--limit)"
    answers = [(point.id, fault(why) if point.id == late else ok("good")) for point in STATIC]
    findings = tuple(finding(point_id, answer) for point_id, answer in answers)
    found = Report(image(), findings, tuple(map(trial, Profile)), 60.5, why)
    assert not any(found.fulfils(profile) for profile in Profile)
    assert f"{late} had {why}" in report.text(found, Profile.OWN).splitlines()[0]
    assert why in report.verdict(found, Profile.OWN)
    assert json.loads(report.as_json(found, Profile.OWN))["unfinished"] == why


def test_verdict_names_what_is_needed_and_was_not_checked() -> None:
    own = trial(Profile.OWN)
    own = Trial(Profile.OWN, own.user, (*own.steps[:-1], finding("live-allreduce", not_checked("no Python"))))
    assert report.verdict(a_report(own), Profile.OWN).endswith("(5.0 s); not checked: live-allreduce")


def test_profile_that_fails_spoils_the_stricter_ones_only() -> None:
    found = a_report(trial(Profile.ANY_UID, fails="live-ssh", causing=("any-uid-name",)))
    assert [profile for profile in Profile if found.fulfils(profile)] == [Profile.OWN]
    said = report.verdict(found, Profile.HARDENED)
    assert "does not run as any-uid; change: any-uid-name" in said


def test_step_that_is_advice_or_not_checked_is_no_failure() -> None:
    assert trial(Profile.OWN, fails="live-path").works
    assert Trial(Profile.OWN, "user", (finding("live-allreduce", not_checked("no Python")),)).works
    assert not trial(Profile.OWN, fails="live-allreduce").works


def test_text_has_reason_and_fix_of_every_fault_and_of_none_other() -> None:
    text = report.text(a_report(faults=("sshd-port", "labels")), Profile.OWN)
    plain = " ".join(text.split())
    for point in STATIC:
        assert (point.reason in plain) == (point.id in {"sshd-port", "labels"})
    assert "FAULT   sshd-port" in text
    assert "advice  labels" in text
    assert max(map(len, text.splitlines())) <= 120


def test_json_says_what_text_says() -> None:
    found = a_report(trial(Profile.HARDENED, fails="live-worker"), faults=("file-capabilities",))
    content = json.loads(report.as_json(found, Profile.HARDENED))
    assert (content["fulfilled"], content["required"], content["bytes"]) == (False, "hardened", 123_400_000)
    assert [p["id"] for p in content["points"] if p["status"] == Status.FAULT.value] == ["file-capabilities"]
    hardened = content["profiles"][2]
    assert (hardened["works"], hardened["fulfilled"], hardened["change"]) == (False, False, ["file-capabilities"])


# -- progress --


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_rewrites_one_line_and_clears_it() -> None:
    terminal = Terminal()
    progress = Progress(terminal)
    progress("own", "live-ssh")
    progress("any-uid", "live-worker")
    progress.clear()
    progress("own", "live-ranks")  # a thread that ends late
    written = terminal.getvalue()
    assert "own: live-ssh  any-uid: live-worker" in written
    assert "\n" not in written
    assert written.endswith("\r\033[K")


def test_progress_is_silent_without_a_terminal() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress("own", "live-ssh")
    progress.clear()
    assert stream.getvalue() == ""
