"""Everything that turns text into values, or values into text: hostfiles, addresses, names, environments, versions."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

import pytest

from mpiboot.bootstrap import addresses, environment, hostfile, interface, names, runtime, termination
from mpiboot.bootstrap import exit as ending
from mpiboot.bootstrap.addresses import AddressFile, Place
from mpiboot.bootstrap.hostfile import Entry, HostfileError
from mpiboot.bootstrap.resolver import look_up

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
def test_hostfiles_of_every_dialect_are_read(text: str, entries: list[tuple[str, int]]) -> None:
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
    with pytest.raises(HostfileError) as error:
        hostfile.parse(text, "f")
    assert str(error.value) == message


def test_hostfiles_are_written_in_either_dialect() -> None:
    entries = (Entry("a.b", 2), Entry("fe80::1", 1))
    assert hostfile.render(entries, "openmpi") == "a.b slots=2\nfe80::1 slots=1\n"
    assert hostfile.render(entries, "hydra") == "a.b:2\n[fe80::1]:1\n"


@pytest.mark.parametrize(
    ("name", "own"),
    [("pi-launcher", True), ("pi-launcher.pi.ns.svc", True), ("localhost", True), ("pi-worker-0.pi", False),
     ("10.0.0.1", False), ("pi", False)],
)  # fmt: skip
def test_the_launchers_own_line_goes_by_the_name_it_has_itself(name: str, own: bool) -> None:
    entries = hostfile.with_own_name([Entry(name, 1)], "pi-launcher")
    assert entries == (Entry("pi-launcher" if own else name, 1),)


def test_addresses_are_read_and_what_is_wrong_is_told() -> None:
    good = "# names\na 10.0.0.1\nb 10.0.0.2 22 root # c\nc fe80::1 2222\n"
    text = f"{good}d nowhere\ne 10.0.0.3 0\nf\ng 1.2.3.4 1 u more\n"
    places, problems = addresses.parse(text)
    assert places == {"a": Place("10.0.0.1"), "b": Place("10.0.0.2", 22, "root"), "c": Place("fe80::1", 2222)}
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
    assert file.changed() == {"a": Place("10.0.0.1")}
    assert file.changed() is None
    beside = tmp_path / "new"
    beside.write_text("a 10.0.0.2\n")
    beside.replace(path)
    assert file.changed() == {"a": Place("10.0.0.2")}
    path.unlink()
    assert file.changed() is None
    path.write_text("a 10.0.0.3\n")
    assert file.changed() == {"a": Place("10.0.0.3")}


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
def test_names_are_asked_as_absolute_ones_first(name: str, search: tuple[str, ...], asked: list[str]) -> None:
    assert list(names.questions(name, search)) == asked


def test_the_last_search_line_counts() -> None:
    assert names.search_list("nameserver 1.1.1.1\ndomain a\nsearch b c\n") == ("b", "c")
    assert names.search_list("") == ()


def test_a_name_of_this_machine_is_looked_up() -> None:
    assert look_up("localhost", ()).address == "127.0.0.1"
    answer = look_up("no-such-name.invalid", ())
    assert answer.address == ""
    assert answer.error


SETTING = environment.Setting(
    ssh_config="/run/ssh_config", shim="/run/bin/ssh", openmpi_hostfile="/run/o", hydra_hostfile="/run/h",
    hostfile="/run/o", given_hostfile="/etc/mpi/hostfile", live="", interface="eth0", ranks_a_host="2", root=False,
)  # fmt: skip


def test_every_mpi_is_told_where_its_hosts_are() -> None:
    made = environment.build({"PATH": "/bin"}, SETTING, ())
    for name in ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"):
        assert made[name] == "/run/o"
    for name in ("HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"):
        assert made[name] == "/run/h"
    for name in ("HYDRA_IFACE", "I_MPI_HYDRA_IFACE"):
        assert made[name] == "eth0"
    assert made["PATH"] == "/run/bin:/bin"


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
    made = environment.build({}, SETTING._replace(openmpi_hostfile="", hydra_hostfile="", hostfile=""), ())
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
    older = SETTING._replace(list_beside_x=False)
    environ = {"PATH": "/bin", "LD_LIBRARY_PATH": "/l", "X": "1"}
    assert "OMPI_MCA_mca_base_env_list" not in environment.build(environ, older, ())
    assert environment.build(environ, older, ("X",))["OMPI_MCA_mca_base_env_list"] == "X;PATH;LD_LIBRARY_PATH"
    given = {**environ, "OMPI_MCA_mca_base_env_list": "X"}
    assert environment.build(given, older, ())["OMPI_MCA_mca_base_env_list"] == "X;PATH;LD_LIBRARY_PATH"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mpirun (Open MPI) 5.0.11\n\nReport bugs", "Open MPI 5.0.11"),
        ("mpirun (Open MPI) 4.1.4\n", "Open MPI 4.1.4"),
        ("HYDRA build details:\n    Version:                                 4.2.1\n", "MPICH 4.2.1"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b)\n", "Intel MPI 2021.18.1"),
        ("something else", "no known MPI"),
    ],
)
def test_a_runtime_is_known_by_its_own_words(text: str, told: str) -> None:
    assert str(runtime.identify(text)) == told


def test_the_interface_to_a_worker_is_found() -> None:
    assert interface.towards("127.0.1.7") == "lo"
    assert interface.towards("not an address") == ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
        except OSError:
            return  # this machine has no network
    assert interface.towards("192.0.2.1") in {name for _, name in socket.if_nameindex()} - {"lo"}


@pytest.mark.parametrize(
    ("code", "line"),
    [(0, ""), (3, "mpirun exited with code 3"), (137, "mpirun ended by SIGKILL (exit 137)"),
     (128 + signal.SIGTERM, "mpirun ended by SIGTERM (exit 143)"), (255, "mpirun exited with code 255")],
)  # fmt: skip
def test_the_last_line_says_how_it_ended(code: int, line: str) -> None:
    assert ending.of_command(["/usr/bin/mpirun", "-n", "4"], code) == line


def test_last_words_go_where_they_are_read_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"
    termination.write("lost", str(path))
    assert not path.exists()
    path.write_text("")
    termination.write("x" * 5000, str(path))
    assert len(path.read_text()) == 4096
