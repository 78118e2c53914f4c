"""The one table of MPI runtimes: what each is called, what it reads and how it starts ranks. Everything else asks it.

A further runtime is a further row here, an image in images/matrix.toml with a stage in images/Dockerfile and an install
script, and a line in docs/images.md.
"""

# Process 1 imports this before it starts anything: no dataclasses, no pattern that is compiled before it is needed, and
# no annotations as text, of which a NamedTuple compiles each.
from collections.abc import Mapping
from typing import NamedTuple

Pairs = tuple[tuple[str, str], ...]  # names and values of variables


class HostfileForm(NamedTuple):
    """How the lines of a hostfile say how many ranks a host takes: the host, the separator, the number."""

    name: str
    separator: str

    def line(self, host: str, slots: int) -> str:
        # An IPv6 address before a colon and a number needs brackets.
        host = f"[{host}]" if ":" in host and self.separator == ":" else host
        return f"{host}{self.separator}{slots}\n"

    @property
    def key(self) -> str:
        """The word before `=`, as in `slots=2`; empty if the form has none."""
        return self.separator.strip().rpartition("=")[0]


SLOTS = HostfileForm("slots", " slots=")
COLONS = HostfileForm("colons", ":")


class Runtime(NamedTuple):
    """One MPI runtime. The groups of variables all get the same value, which the comment names."""

    name: str  # spec.mpiImplementation of v2beta1
    title: str  # in messages
    image: str  # the name of our image with it, in images/matrix.toml
    package: str  # on PyPI
    version: str  # a pattern for what `mpirun --version` prints; its group is the version
    starters: tuple[str, ...]  # the names of the programs that start ranks
    daemons: Mapping[int, tuple[str, ...]]  # what mpirun starts on each host: from that major release on
    hostfile: HostfileForm
    hostfile_option: str  # of mpirun
    tag_output: str = "-prepend-rank"  # option of mpirun: each line begins with its rank
    fortran: str = "mpifort"  # the compiler wrapper; empty: the images have none
    v1alpha2: str = ""  # spec.mpiDistribution, where it is not the name
    image_words: tuple[str, ...] = ()  # what the name of an image holds that has this runtime
    fills_slots: bool = False  # without -n mpirun starts a rank in each slot, not one in all

    hostfile_variables: tuple[str, ...] = ()  # the path of the hostfile
    ssh_variables: tuple[str, ...] = ()  # the program that mpirun calls instead of ssh
    ssh_options: tuple[str, ...] = ()  # options that mpirun adds to those of ssh
    ssh_takes_options: bool = False  # the program may be followed by options
    by_ssh: Pairs = ()  # makes mpirun use ssh, whatever else it finds
    default_slots: tuple[str, ...] = ()  # the ranks of a host without a number in the hostfile
    ranks_a_host: tuple[str, ...] = ()  # the ranks of each host, where mpirun does not take them from the hostfile
    full_names: tuple[str, ...] = ()  # "true": hosts are called by the hostfile's whole names
    root_variables: tuple[str, ...] = ()  # "1": root may run ranks
    interface_variables: tuple[str, ...] = ()  # the network interface that leads to the workers
    always: Pairs = ()
    unbound: Pairs = ()  # ranks are not bound to cores
    flat: Pairs = ()  # mpirun logs in to every host itself
    flat_up_to: int | None = None  # with so many hosts it does so anyhow; None: with any number
    forward_list: str = ""  # the variable that names the variables for ranks; empty: ranks get all of them
    no_list_beside_x: tuple[int, ...] = ()  # major releases whose `mpirun -x` fails where that list is set
    hides_lost_hosts: tuple[int, ...] = ()  # major releases that may exit with 0 though a host was lost
    # The operator for v2beta1 set these whatever a template says. The others give way to a template.
    fixed: tuple[str, ...] = ()

    @property
    def distribution(self) -> str:
        """spec.mpiDistribution of v1alpha2."""
        return self.v1alpha2 or self.name


# In the order in which a version is looked for: Intel's mpirun is a Hydra too.
RUNTIMES: tuple[Runtime, ...] = (
    Runtime(
        "OpenMPI", "Open MPI", "openmpi", "openmpi",
        version=r"\((?:Open MPI|OpenRTE|PRRTE)\)\s+v?([^\s,]+)",
        starters=("mpirun", "mpiexec", "orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi"),
        daemons={0: ("orted",), 5: ("prted",)},
        hostfile=SLOTS,
        hostfile_option="--hostfile",
        tag_output="--tag-output",
        image_words=("openmpi",),
        fills_slots=True,
        # Each setting by release 4's name, then by 5's, which reads none of the older names.
        hostfile_variables=("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"),
        ssh_variables=("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"),
        ssh_options=("OMPI_MCA_plm_rsh_args", "PRTE_MCA_plm_ssh_args"),
        ssh_takes_options=True,
        default_slots=("OMPI_MCA_orte_set_default_slots", "PRTE_MCA_prte_set_default_slots"),
        full_names=("OMPI_MCA_orte_keep_fqdn_hostnames", "PRTE_MCA_prte_keep_fqdn_hostnames"),
        root_variables=(
            "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
            "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
        ),
        # Open MPI 5's daemons fork from threads, and forget a rank that ends before its thread has noted the pid:
        # `mpirun hostname` then waits for ever. Without the threads there is no such gap.
        always=(("PRTE_MCA_odls_base_max_threads", "0"),),
        # Two containers on a node do not see each other and would bind their first ranks to the same core.
        unbound=(("OMPI_MCA_hwloc_base_binding_policy", "none"), ("PRTE_MCA_hwloc_default_binding_policy", "none")),
        flat=(("OMPI_MCA_plm_rsh_no_tree_spawn", "1"), ("PRTE_MCA_plm_ssh_no_tree_spawn", "1")),
        flat_up_to=64,
        forward_list="OMPI_MCA_mca_base_env_list",
        no_list_beside_x=(4,),
        # "PRTE has lost communication with a remote daemon", and exit code 0 in every second case (5.0.11).
        hides_lost_hosts=(5,),
        fixed=(
            "OMPI_MCA_orte_keep_fqdn_hostnames", "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_args",
            "OMPI_MCA_orte_set_default_slots",
        ),
    ),
    Runtime(
        "Intel", "Intel MPI", "intel", "impi-rt",
        version=r"Intel\(R\) MPI Library.*?Version\s+([^\s,]+(?: Update \d+)?)",
        starters=("mpirun", "mpiexec", "mpiexec.hydra"),
        daemons={0: ("hydra_bstrap_proxy", "hydra_pmi_proxy")},
        hostfile=COLONS,
        hostfile_option="-f",
        fortran="mpif90",
        v1alpha2="IntelMPI",
        image_words=("intel", "impi", "oneapi"),
        hostfile_variables=("I_MPI_HYDRA_HOST_FILE",),
        ssh_variables=("I_MPI_HYDRA_BOOTSTRAP_EXEC",),
        ssh_options=("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",),
        by_ssh=(("I_MPI_HYDRA_BOOTSTRAP", "ssh"),),
        # Intel's takes the names of a hostfile and not its numbers. Where they differ, nothing says it.
        ranks_a_host=("I_MPI_PERHOST",),
        interface_variables=("I_MPI_HYDRA_IFACE",),
        flat=(("I_MPI_HYDRA_BRANCH_COUNT", "0"),),  # -1 means "choose yourself", 0 means "no tree"
        flat_up_to=16,
        fixed=("I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "I_MPI_PERHOST"),
    ),
    Runtime(
        "MPICH", "MPICH", "mpich", "mpich",
        version=r"HYDRA build details:.*?Version:\s+([^\s,]+)",
        starters=("mpirun", "mpiexec", "mpiexec.hydra", "mpirun.mpich", "mpiexec.mpich"),
        daemons={0: ("hydra_pmi_proxy",)},
        hostfile=COLONS,
        hostfile_option="-f",
        fortran="",  # its wheel has neither wrapper nor library
        image_words=("mpich",),
        hostfile_variables=("HYDRA_HOST_FILE",),
        ssh_variables=("HYDRA_LAUNCHER_EXEC",),
        ssh_options=("HYDRA_LAUNCH_EXTRA_ARGS", "HYDRA_LAUNCHER_EXTRA_ARGS"),  # MPICH 5 reads only the second
        by_ssh=(("HYDRA_LAUNCHER", "ssh"),),
        interface_variables=("HYDRA_IFACE",),
        fixed=("HYDRA_HOST_FILE", "HYDRA_LAUNCH_EXTRA_ARGS"),
    ),
)  # fmt: skip

DEFAULT = RUNTIMES[0]

# What mpiruns call the number of ranks, the hosts, and a file with the hosts.
COUNT_OPTIONS = ("-n", "-np", "--n", "--np", "-c")
HOST_OPTIONS = ("-H", "-host", "--host", "-hosts", "--hosts")
HOSTFILE_OPTIONS = ("-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f")


class Installed(NamedTuple):
    """A runtime and its version, as `mpirun --version` says them."""

    runtime: Runtime
    version: str

    def __str__(self) -> str:
        return f"{self.runtime.title} {self.version}"

    @property
    def major(self) -> int:
        first = self.version.partition(".")[0]
        return int(first) if first.isdecimal() and len(first) < 10 else 0

    @property
    def daemons(self) -> tuple[str, ...]:
        """The programs that mpirun starts on a worker, by name."""
        return self.runtime.daemons[max(since for since in self.runtime.daemons if since <= self.major)]


def names() -> tuple[str, ...]:
    return tuple(runtime.name for runtime in RUNTIMES)


def named(name: str) -> Runtime:
    """The runtime of that name in the table."""
    return next(runtime for runtime in RUNTIMES if runtime.name == name)


def by_v1alpha2() -> dict[str, Runtime]:
    """The runtimes by the names that v1alpha2 has for them."""
    return {runtime.distribution: runtime for runtime in RUNTIMES}


def in_image(name: str) -> Runtime:
    """The runtime that the last part of an image's name hints at; the default if it does not. The longest word counts:
    one such word may be a part of another.
    """
    found = [(len(word), each) for each in RUNTIMES for word in each.image_words if word in name]
    return max(found, key=lambda pair: pair[0])[1] if found else DEFAULT


def identify(text: str) -> Installed | None:
    """The runtime behind the output of `mpirun --version`; None if the table has none that prints so."""
    import re

    for runtime in RUNTIMES:
        found = re.search(runtime.version, text, re.DOTALL)
        if found:
            return Installed(runtime, found[1])
    return None


def starters() -> tuple[str, ...]:
    """The names of all programs that start ranks."""
    return tuple(dict.fromkeys(name for runtime in RUNTIMES for name in runtime.starters))


def daemons() -> frozenset[str]:
    """The names of all programs that a runtime puts between mpirun and the ranks of a host."""
    return frozenset(name for runtime in RUNTIMES for names in runtime.daemons.values() for name in names)


def hostfile_forms() -> tuple[HostfileForm, ...]:
    return tuple(dict.fromkeys(runtime.hostfile for runtime in RUNTIMES))


def root_may_run() -> dict[str, str]:
    """The variables by which root may run ranks: in a container root is what its user chose."""
    return {name: "1" for runtime in RUNTIMES for name in runtime.root_variables}
