"""Everything that turns text into values, or values into text: hostfiles, addresses, names, environments, versions."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap import exit_codes
from mpiboot.bootstrap.hosts import Endpoint, Entry
from mpiboot.bootstrap.process import reaper, termination
from mpiboot.bootstrap.run import environment, hostfile
from mpiboot.bootstrap.wait import addresses, resolver
from mpiboot.bootstrap.wait.addresses import AddressFile
from mpiboot.bootstrap.wait.resolver import look_up
from mpiboot.job import mpi
from mpiboot.job.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a slots=2\nb slots=4\n", [("a", 2), ("b", 4)]),
        ("a:2\nb:4\n", [("a", 2), ("b", 4)]),
        ("a\nb\n", [("a", 1), ("b", 1)]),
        ("# c\n\na slots=2 max_slots=4 # d\n", [("a", 2)]),
        ("a slots=1\na slots=2\n", [("a", 3)]),
        ("user@a slots=2", [("a", 2)]),
        ("10.0.0.1:3\nfe80::1\n[fe80::2]:2\n", [("10.0.0.1", 3), ("fe80::1", 1), ("fe80::2", 2)]),
        ("a slots=0\n", [("a", 0)]),
        ("", []),
    ],
)
def test_hostfiles_of_every_form_are_read(text: str, entries: list[tuple[str, int]]) -> None:
    assert hostfile.parse(text, "f") == tuple(Entry(*entry) for entry in entries)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nb slots=two\n", "f:2: slots must be a whole number, is 'two'"),
        ("a:x\n", "f:1: slots must be a whole number, is 'x'"),
        ("-oProxyCommand=x\n", "f:1: '-oProxyCommand=x' is not a host name"),
        ("../etc\n", "f:1: '../etc' is not a host name"),
        ('"a b"\n', "f:1: '\"a' is not a host name"),
    ],
)
def test_a_line_that_is_no_host_is_named(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        hostfile.parse(text, "f")
    assert str(error.value) == message


def test_hostfiles_are_written_in_either_form() -> None:
    entries = (Entry("a.b", 2), Entry("fe80::1", 1))
    assert hostfile.render(entries, mpi.SLOTS) == "a.b slots=2\nfe80::1 slots=1\n"
    assert hostfile.render(entries, mpi.COLONS) == "a.b:2\n[fe80::1]:1\n"


@pytest.mark.parametrize(
    ("name", "own"),
    [("pi-launcher", True), ("pi-launcher.pi.ns.svc", True), ("localhost", True), ("pi-worker-0.pi", False),
     ("10.0.0.1", False), ("pi", False)],
)  # fmt: skip
def test_the_launchers_own_line_goes_by_the_name_it_has_itself(name: str, own: bool) -> None:
    entries = hostfile.with_own_name([Entry(name, 1)], "pi-launcher")
    assert entries == (Entry("pi-launcher" if own else name, 1),)


def test_addresses_are_read_and_mistakes_are_reported() -> None:
    good = "# names\na 10.0.0.1\nb 10.0.0.2 22 root # c\nc fe80::1 2222\n"
    text = f"{good}d nowhere\ne 10.0.0.3 0\nf\ng 1.2.3.4 1 u more\n"
    endpoints, problems = addresses.parse(text)
    second = Endpoint("10.0.0.2", 22, "root")
    assert endpoints == {"a": Endpoint("10.0.0.1"), "b": second, "c": Endpoint("fe80::1", 2222)}
    assert problems == [
        "5: 'nowhere' is not an IP address",
        "6: '0' is not a port",
        "7: must be: NAME ADDRESS [PORT [USER]]",
        "8: must be: NAME ADDRESS [PORT [USER]]",
    ]


def test_a_file_of_addresses_is_read_again_only_if_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "addresses"
    file = AddressFile(str(path))
    assert file.changed() is None
    path.write_text("")
    assert file.changed() == {}
    assert file.changed() is None
    path.write_text("a 10.0.0.1\n")
    assert file.changed() == {"a": Endpoint("10.0.0.1")}
    assert file.changed() is None
    beside = tmp_path / "new"
    beside.write_text("a 10.0.0.2\n")
    beside.replace(path)
    assert file.changed() == {"a": Endpoint("10.0.0.2")}
    path.unlink()
    assert file.changed() is None
    path.write_text("a 10.0.0.3\n")
    assert file.changed() == {"a": Endpoint("10.0.0.3")}


CLUSTER = ("ns.svc.cluster.local", "svc.cluster.local", "cluster.local")


@pytest.mark.parametrize(
    ("name", "search", "asked"),
    [
        ("w0", CLUSTER, ["w0"]),
        ("w0.", (), ["w0."]),
        ("w0.pi.ns.svc", CLUSTER, ["w0.pi.ns.svc.cluster.local.", "w0.pi.ns.svc.", "w0.pi.ns.svc"]),
        ("w0.pi.ns", CLUSTER, ["w0.pi.ns.svc.cluster.local.", "w0.pi.ns.", "w0.pi.ns"]),
        ("w0.pi.ns.svc.cluster.local", CLUSTER, ["w0.pi.ns.svc.cluster.local.", "w0.pi.ns.svc.cluster.local"]),
        ("host.example.org", ("example.org",), ["host.example.org.", "host.example.org"]),
    ],
)
def test_absolute_names_are_resolved_first(name: str, search: tuple[str, ...], asked: list[str]) -> None:
    assert list(resolver.questions(name, search)) == asked


def test_the_last_search_line_counts() -> None:
    assert resolver.parse_search_list("nameserver 1.1.1.1\ndomain a\nsearch b c\n") == ("b", "c")
    assert resolver.parse_search_list("") == ()


def test_a_name_of_this_machine_is_looked_up() -> None:
    assert look_up("localhost", ()).address == "127.0.0.1"
    answer = look_up("no-such-name.invalid", ())
    assert answer.address == ""
    assert answer.error


SETTING = environment.Setting(
    ssh_config="/run/ssh_config", shim="/run/bin/ssh", hostfiles={"slots": "/run/o", "colons": "/run/h"},
    hostfile="/run/o", given_hostfile="/etc/mpi/hostfile", live="", interface="eth0", first_address="10.0.0.7",
    ranks_a_host="2", root=False,
)  # fmt: skip


def test_every_mpi_gets_the_hostfile() -> None:
    made = environment.build({"PATH": "/bin"}, SETTING, ())
    for name in ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"):
        assert made[name] == "/run/o"
    for name in ("HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"):
        assert made[name] == "/run/h"
    for name in ("HYDRA_IFACE", "I_MPI_HYDRA_IFACE"):
        assert made[name] == "eth0"
    assert made["PATH"] == "/run/bin:/bin"


def test_programs_of_torch_get_the_address_of_the_first_host_and_a_port() -> None:
    made = environment.build({}, SETTING, ())
    assert made["MASTER_ADDR"] == "10.0.0.7"
    assert 20000 <= int(made["MASTER_PORT"]) < 30000
    assert {"MASTER_ADDR", "MASTER_PORT"} <= set(made["OMPI_MCA_mca_base_env_list"].split(";"))
    own = {"MASTER_ADDR": "10.1.1.1", "MASTER_PORT": "29500"}
    assert own.items() <= environment.build(own, SETTING, ()).items()
    assert "MASTER_PORT" not in environment.build({}, SETTING._replace(first_address=""), ())


def test_no_mpi_makes_a_worker_log_in_to_another_one() -> None:
    """Workers have no key for that: trees of ssh are off at any size."""
    made = environment.build({}, SETTING, ())
    assert made["PRTE_MCA_plm_ssh_no_tree_spawn"] == made["OMPI_MCA_plm_rsh_no_tree_spawn"] == "1"
    assert made["I_MPI_HYDRA_BRANCH_COUNT"] == "0"


def test_what_a_user_set_stays_and_what_the_plan_set_is_replaced() -> None:
    plan = {"PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile", "HYDRA_HOST_FILE": "/mine", "HYDRA_IFACE": "ib0"}
    made = environment.build(plan, SETTING, ())
    assert made["PRTE_MCA_prte_default_hostfile"] == "/run/o"
    assert made["HYDRA_HOST_FILE"] == "/mine"
    assert made["HYDRA_IFACE"] == "ib0"


def test_a_job_without_hosts_gets_no_hostfile() -> None:
    made = environment.build({}, SETTING._replace(hostfiles={}, hostfile=""), ())
    assert not {name for name in made if "HOST" in name.upper() and "FILE" in name.upper()}


def test_variables_are_forwarded_by_name_or_beginning_and_secrets_never() -> None:
    environ = {"NCCL_A": "1", "NCCL_B": "2", "X": "3", "MPIBOOT_TOKEN": "s", "PATH": "/bin", "LD_LIBRARY_PATH": "/l"}
    environ["OMPI_MCA_mca_base_env_list"] = "Z"
    made = environment.build(environ, SETTING, ("NCCL_*", "X", "NONE", "MPIBOOT_*"))
    listed = made["OMPI_MCA_mca_base_env_list"].split(";")
    assert listed[:4] == ["Z", "NCCL_A", "NCCL_B", "X"]
    assert {"PATH", "LD_LIBRARY_PATH"} <= set(listed)
    assert "MPIBOOT_TOKEN" not in {*listed, *made}


def test_no_list_keeps_users_of_open_mpi_4_from_minus_x_unless_it_was_asked_for() -> None:
    older = SETTING._replace(sets_forward_list=False)
    environ = {"PATH": "/bin", "LD_LIBRARY_PATH": "/l", "X": "1"}
    assert "OMPI_MCA_mca_base_env_list" not in environment.build(environ, older, ())
    whole = "X;PATH;LD_LIBRARY_PATH;MASTER_ADDR;MASTER_PORT"
    assert environment.build(environ, older, ("X",))["OMPI_MCA_mca_base_env_list"] == whole
    given = {**environ, "OMPI_MCA_mca_base_env_list": "X"}
    assert environment.build(given, older, ())["OMPI_MCA_mca_base_env_list"] == whole


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mpirun (Open MPI) 5.0.11\n\nReport bugs", "Open MPI 5.0.11"),
        ("mpirun (Open MPI) 4.1.4\n", "Open MPI 4.1.4"),
        ("HYDRA build details:\n    Version:                                 4.2.1\n", "MPICH 4.2.1"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b)\n", "Intel MPI 2021.18.1"),
        ("something else", "None"),
    ],
)
def test_a_runtime_is_known_by_its_version_output(text: str, told: str) -> None:
    assert str(mpi.identify(text)) == told


def test_the_interface_to_a_worker_is_found() -> None:
    assert environment.interface_towards("127.0.1.7") == "lo"
    assert environment.interface_towards("not an address") == ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
        except OSError:
            return  # this machine has no network
    assert environment.interface_towards("192.0.2.1") in {name for _, name in socket.if_nameindex()} - {"lo"}


LIKELY = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
          11: "SIGSEGV", 15: "SIGTERM", 24: "SIGXCPU"}  # fmt: skip


@pytest.mark.parametrize("code", range(256))
def test_the_last_line_of_a_program_that_exits_names_its_code_and_claims_no_signal(code: int) -> None:
    """183 is Open MPI's for a program that it does not find, and 192 may be a program's own."""
    likely = f" (128 + {LIKELY[code - 128]})" if code - 128 in LIKELY else ""
    line = f"mpirun exited with code {code}{likely}" if code else ""
    assert exit_line(code << 8) == line


@pytest.mark.parametrize("number", range(1, 65))
def test_the_last_line_of_a_program_that_a_signal_ended_names_the_signal(number: int) -> None:
    names = {member.value: member.name for member in signal.Signals}
    assert exit_line(number) == f"mpirun ended by {names.get(number, f'signal {number}')} (exit {128 + number})"


def exit_line(status: int) -> str:
    """The last line for what `waitpid` reports of a command."""
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return exit_codes.of_command(["/usr/bin/mpirun", "-n", "4"], reaper.exit_code(status), ended_by)


def test_the_termination_message_is_written_where_its_file_exists(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"
    termination.write("lost", str(path))
    assert not path.exists()
    path.write_text("")
    termination.write("x" * 5000, str(path))
    assert len(path.read_text()) == 4096
