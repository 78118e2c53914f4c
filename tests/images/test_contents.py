"""What is in the images, asked in containers of them, under the users that people run them as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.containers import HARDENED, LOOK_FOR_CAPABILITIES, ONLY_THE_WITNESS

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., tuple[int, str]]
    Tag = Callable[[str], str]

RUNTIMES = ("openmpi", "mpich", "intel")
USERS: dict[str, dict[str, Any]] = {
    "own": {},
    "root": {"user": "0", "environment": {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}},
    "mpiuser": {"user": "mpiuser"},
    "hardened": HARDENED,
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_mpi4py_reduces_over_two_ranks(image: Tag, run: Run, runtime: str, user: str) -> None:
    program = "from mpi4py import MPI; c = MPI.COMM_WORLD; print('sum', c.allreduce(c.rank + 1))"
    code, said = run(image(runtime), "mpirun", "-n", "2", "python", "-c", program, **USERS[user])
    assert code == 0, said
    assert said.count("sum 3") == 2


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_nothing_that_a_job_must_bring_is_baked_in(image: Tag, run: Run, runtime: str) -> None:
    look = "ls /etc/ssh/ssh_host_* /root/.ssh/* /home/*/.ssh/* 2>/dev/null; dpkg --audit; true"
    code, said = run(image(runtime), "sh", "-c", look, user="0")
    assert (code, said) == (0, "")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_no_file_carries_capabilities(image: Tag, run: Run, runtime: str) -> None:
    said = run(image(runtime), "python", "-c", LOOK_FOR_CAPABILITIES, user="0")
    assert said == (0, ONLY_THE_WITNESS)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_no_file_that_differs_between_two_builds_stays(image: Tag, run: Run, runtime: str) -> None:
    files = "/var/log/dpkg.log /var/log/alternatives.log /var/log/apt /var/cache/ldconfig/aux-cache /etc/passwd-"
    look = f"ls {files} 2>/dev/null; find /var/lib/apt /var/cache /root -name '*.deb' -o -name '*Packages*'"
    assert run(image(runtime), "sh", "-c", look, user="0") == (0, "")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_library_of_every_program_is_there(image: Tag, run: Run, runtime: str) -> None:
    files = "/usr/bin/* /usr/sbin/* /opt/*/bin/* /usr/lib/*/openmpi/lib/*/*.so"
    # Only one of Intel's benchmarks (IMB-MT) needs the OpenMP runtime.
    look = f"for file in {files}; do ldd $file 2>/dev/null; done | grep 'not found' | grep -v libiomp5.so | sort -u"
    assert run(image(runtime), "sh", "-c", look, user="0") == (0, "")


def test_binding_is_off_until_the_user_wants_it(image: Tag, run: Run) -> None:
    report = ["mpirun", "--report-bindings", "-n", "1", "true"]
    openmpi = image("openmpi")
    assert "not bound" in run(openmpi, *report)[1]
    assert "bound to package[0][core:0]" in run(openmpi, report[0], "--bind-to", "core", *report[1:])[1]
    settings = {"PRTE_MCA_hwloc_default_binding_policy": "core"}
    assert "bound to package[0][core:0]" in run(openmpi, *report, environment=settings)[1]


def test_each_setting_in_open_mpis_files_is_on_a_line_of_its_own(image: Tag, run: Run) -> None:
    # Debian's files end without a newline: an appended line once became the end of the last one.
    look = "grep -hx 'hwloc_base_binding_policy = none' /etc/openmpi/openmpi-mca-params.conf"
    assert run(image("openmpi"), "sh", "-c", look) == (0, "hwloc_base_binding_policy = none\n")


def test_open_mpis_daemon_forks_without_helper_threads(image: Tag, run: Run) -> None:
    # With them a rank that ends at once can be forgotten, and mpirun waits for ever.
    look = "cat /etc/openmpi/prte-mca-params.conf; mpirun -n 1 sh -c 'ls /proc/$PPID/task | wc -l'"
    code, said = run(image("openmpi"), "sh", "-c", look)
    assert code == 0
    assert "odls_base_max_threads = 0" in said.splitlines()
    assert int(said.splitlines()[-1]) < 10


@pytest.mark.parametrize("arguments", [["mpirun", "--version"], ["/bin/sh", "-c", "mpirun --version"]])
def test_a_command_runs_as_given(image: Tag, run: Run, arguments: list[str]) -> None:
    openmpi = image("openmpi")
    assert "5.0" in run(openmpi, *arguments)[1]
    assert "5.0" in run(openmpi, *arguments[1:], entrypoint=arguments[0])[1]


def test_exit_code_of_a_command_is_the_containers(image: Tag, run: Run) -> None:
    assert run(image("openmpi"), "sh", "-c", "exit 7")[0] == 7


def test_no_command_serves_ssh(image: Tag, run: Run) -> None:
    # Without keys the worker cannot: that it says so shows who was started.
    code, said = run(image("openmpi"))
    assert code != 0
    assert said.startswith("mpiboot: ")


def test_a_launchers_command_waits_for_workers_first(image: Tag, run: Run) -> None:
    environment = {"K_MPI_JOB_ROLE": "launcher"}
    first = run(image("openmpi"), "sh", "-c", "tr '\\0' ' ' </proc/1/cmdline", environment=environment)
    assert "/usr/bin/mpiboot launch -- sh -c" in first[1]
    assert run(image("openmpi"), "mpiboot", "--version", environment=environment)[0] == 0


def test_a_launcher_without_a_command_ends_and_says_so(image: Tag, run: Run) -> None:
    # It may come from an operator that does not know the image's name; it must not serve SSH for ever.
    code, said = run(image("openmpi"), environment={"K_MPI_JOB_ROLE": "launcher"})
    assert code == 2
    assert said.startswith("mpiboot: no command to run")


def test_sshd_of_the_path_that_other_images_have_is_the_same_server(image: Tag, run: Run) -> None:
    look = "ssh-keygen -q -t ed25519 -N '' -f /tmp/k; /usr/sbin/sshd -T -h /tmp/k -f /home/mpiuser/.sshd_config"
    code, said = run(image("openmpi"), "sh", "-c", look)
    assert code == 0, said
    effective = set(said.splitlines())
    assert {"port 2222", "usepam no", "strictmodes no", "passwordauthentication no", "maxsessions 1000"} <= effective
    assert {"persourcepenalties no", "usedns no", "pidfile none"} <= effective


def test_python_means_python_3(image: Tag, run: Run) -> None:
    assert run(image("openmpi"), "python", "-c", "import sys; print(sys.version_info.major)") == (0, "3\n")


def test_users_python_path_does_not_change_mpiboot(image: Tag, run: Run) -> None:
    break_it = "mkdir /tmp/p; echo 'raise SystemExit(9)' >/tmp/p/os.py; PYTHONPATH=/tmp/p mpiboot --version"
    assert run(image("openmpi"), "sh", "-c", break_it)[0] == 0


def test_module_for_unknown_users_loads_on_older_systems(image: Tag, run: Run) -> None:
    # Built on the newest Debian, it goes into images of Debian 12 and Ubuntu 24.04 too: no symbol of a newer C library.
    code, said = run(image("openmpi"), "sh", "-c", "grep -ao 'GLIBC_2[.0-9]*' /usr/lib/*/libnss_mpi.so.2 | sort -Vu")
    assert code == 0
    assert all(int(line.split(".")[1]) <= 34 for line in said.split()), said


def test_gpu_image_starts_and_its_libraries_answer_without_a_gpu(image: Tag, run: Run) -> None:
    ask = (
        "import ctypes; n = ctypes.c_int(); nccl = ctypes.CDLL('libnccl.so.2'); cuda = ctypes.CDLL('libcudart.so.12');"
        "print(nccl.ncclGetVersion(ctypes.byref(n)), n.value > 20000, cuda.cudaGetDeviceCount(ctypes.byref(n)) != 0)"
    )
    code, said = run(image("openmpi-cuda"), "python", "-c", ask)
    assert code == 0, said
    assert said.split() == ["0", "True", "True"]


CONNECTS = """#!/usr/bin/python3
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    connection = socket.create_connection(server.getsockname())
    print(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
"""


def test_a_login_does_not_wait_for_acknowledgements(image: Tag, run: Run) -> None:
    """In ssh's place stands a program that connects and tells whether its small packets go out at once."""
    job = "mkdir -p /tmp/job/hosts /tmp/bin; touch /tmp/job/ssh_config /tmp/job/hosts/worker"
    stand_in = 'printf %s "$PROGRAM" >/tmp/bin/ssh; chmod +x /tmp/bin/ssh'
    ask = "PATH=/usr/lib/mpiboot/bin:/tmp/bin:$PATH; ssh worker; ssh stranger"
    environment = {"PROGRAM": CONNECTS, "MPIBOOT_SSH_CONFIG": "/tmp/job/ssh_config"}
    code, said = run(image("openmpi"), "sh", "-c", f"{job}; {stand_in}; {ask}", environment=environment)
    assert (code, said.split()) == (0, ["1", "0"])
