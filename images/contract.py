"""What an image must offer to run in an MPI job: one table for the checker and for docs/image-contract.md."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Profile(enum.IntEnum):
    """How a cluster runs the image, from the easiest to the strictest. Each profile includes those before it."""

    OWN = 1
    ANY_UID = 2
    HARDENED = 3

    @property
    def word(self) -> str:
        """The name on the command line and in reports."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def of(cls, word: str) -> Profile:
        return cls[word.upper().replace("-", "_")]


MEANING = {
    Profile.OWN: "as the image's own user, with the capabilities that an engine gives by default",
    Profile.ANY_UID: "as a uid that the image does not know, with gid 0: OpenShift and many other clusters do this",
    Profile.HARDENED: "as any uid, with all capabilities dropped, no new privileges, a read-only root and a writable "
    "/tmp: stricter than the level 'restricted' of Pod Security",
}


@dataclass(frozen=True)
class Point:
    """One line of the contract. `needed_by` is the first profile that fails without it; None makes it advice."""

    id: str
    must: str
    reason: str
    fix: str
    needed_by: Profile | None


STATIC = (
    Point(
        "shell",
        "/bin/sh is there",
        "sshd passes every command of mpirun to a shell, and pods start sshd through a shell",
        "use a base image that has a shell; a distroless image cannot serve MPI over SSH",
        Profile.OWN,
    ),
    Point(
        "sshd",
        "/usr/sbin/sshd is there",
        "mpirun starts the ranks on a worker by SSH, and jobs call sshd by this path",
        "RUN apt-get update && apt-get install -y --no-install-recommends openssh-server",
        Profile.OWN,
    ),
    Point(
        "ssh-client",
        "ssh is in PATH",
        "mpirun in the launcher calls ssh",
        "RUN apt-get update && apt-get install -y --no-install-recommends openssh-client",
        Profile.OWN,
    ),
    Point(
        "mpirun",
        "mpirun is in PATH and prints which MPI it is",
        "the launcher runs it",
        "install openmpi-bin or mpich, or put the bin directory of your MPI into ENV PATH",
        Profile.OWN,
    ),
    Point(
        "libraries",
        "mpirun and its daemon find their libraries with an empty environment",
        "a rank that ssh starts does not have the image's ENV, so an LD_LIBRARY_PATH set there does not reach it",
        "RUN echo /opt/your-mpi/lib > /etc/ld.so.conf.d/mpi.conf && ldconfig",
        Profile.OWN,
    ),
    Point(
        "sshd-config",
        "sshd accepts its configuration when it gets the job's host key",
        "otherwise no worker starts",
        "run `/usr/sbin/sshd -t` in the image, and correct what it prints",
        Profile.OWN,
    ),
    Point(
        "sshd-port",
        "sshd listens on a port of 1024 or above",
        "without root, or without capabilities, a process cannot open a lower port",
        "RUN echo 'Port 2222' > /etc/ssh/sshd_config.d/mpi.conf, and the same Port in /etc/ssh/ssh_config",
        Profile.ANY_UID,
    ),
    Point(
        "ports-agree",
        "the ssh client's default port is the port on which sshd listens",
        "a launcher of this image connects to its workers on the client's default port",
        "write `Port 2222` under `Host *` in /etc/ssh/ssh_config",
        Profile.OWN,
    ),
    Point(
        "sshd-authorized-keys",
        "sshd looks for authorized keys in the user's .ssh/authorized_keys",
        "the job's key is mounted there",
        "remove AuthorizedKeysFile from the sshd configuration: its default is right",
        Profile.OWN,
    ),
    Point(
        "sshd-strict-modes",
        "sshd has StrictModes off",
        "Kubernetes mounts the keys as a directory that every user may write to, and a strict sshd then ignores them",
        "RUN echo 'StrictModes no' >> /etc/ssh/sshd_config",
        None,
    ),
    Point(
        "sshd-passwords",
        "sshd accepts keys only",
        "every pod of the cluster can reach a worker, and a password can be guessed",
        "RUN printf 'PasswordAuthentication no\\nKbdInteractiveAuthentication no\\n' >> /etc/ssh/sshd_config",
        None,
    ),
    Point(
        "sshd-penalties",
        "sshd does not lock out a launcher that connects early (PerSourcePenalties no, from OpenSSH 9.8 on)",
        "probes of a worker that is not ready count against the launcher's address, and then sshd refuses it",
        "RUN echo 'PerSourcePenalties no' >> /etc/ssh/sshd_config",
        None,
    ),
    Point(
        "host-keys-baked",
        "no SSH host key is in the image",
        "every user who can pull the image has the private key, and can pose as a worker of any job that uses it",
        "RUN rm -f /etc/ssh/ssh_host_*, in the same RUN that installs openssh-server; a job brings its own key",
        Profile.HARDENED,
    ),
    Point(
        "login-keys-baked",
        "neither authorized_keys nor a private key is in the image",
        "every user who can pull the image can log in to the workers of any job that uses it",
        "remove the files from .ssh in the RUN or COPY that brings them; a job brings its own keys",
        Profile.HARDENED,
    ),
    Point(
        "client-checks",
        "the ssh client checks host keys",
        "with `StrictHostKeyChecking no` a launcher sends the program and its data to any machine that answers",
        "remove StrictHostKeyChecking and UserKnownHostsFile from /etc/ssh/ssh_config; a job brings known_hosts",
        Profile.HARDENED,
    ),
    Point(
        "file-capabilities",
        "sshd, ssh, mpirun and its daemon carry no file capabilities",
        "where capabilities are dropped, the kernel refuses to start such a file: Operation not permitted",
        "leave out `setcap ... /usr/sbin/sshd`; port 2222 needs no capability",
        Profile.HARDENED,
    ),
    Point(
        "user",
        "USER is a number other than 0",
        "with runAsNonRoot the kubelet refuses root, and also names, because it cannot look up a name",
        "end the Dockerfile with `USER 1000:0`",
        Profile.HARDENED,
    ),
    Point(
        "home",
        "the user's home exists, and any uid with gid 0 can enter it",
        "the keys are mounted below it, and programs start in it",
        "RUN chgrp 0 HOME && chmod g=rwx,o=rx HOME, where HOME is the home of the image's user",
        Profile.ANY_UID,
    ),
    Point(
        "login-shell",
        "the user's login shell runs commands",
        "sshd refuses a user whose shell is missing, and a shell like nologin runs nothing",
        "RUN usermod --shell /bin/bash USER",
        Profile.OWN,
    ),
    Point(
        "any-uid-name",
        "a uid that is not in /etc/passwd has a name",
        "ssh ends with `No user exists for uid`, and sshd cannot log in a user without a name",
        "use an image of mpiboot as the base, or add its layer: mpiboot images fragment openmpi",
        Profile.ANY_UID,
    ),
    Point(
        "entrypoint",
        "the entrypoint runs a given command without changing it",
        "a manifest with `args:` and no `command:` starts its program through the entrypoint",
        "end the entrypoint script with: exec \"$@\"",
        None,
    ),
    Point(
        "python",
        "python and python3 are in PATH",
        "manifests call `python`; Debian has only python3",
        "RUN apt-get update && apt-get install -y --no-install-recommends python3 python-is-python3",
        None,
    ),
    Point(
        "gpu-variables",
        "an image with CUDA sets NVIDIA_VISIBLE_DEVICES, and NVIDIA_DRIVER_CAPABILITIES with compute",
        "without them the container runtime mounts no driver, or not the compute part of it",
        "ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        Profile.OWN,
    ),
    Point(
        "labels",
        "the labels org.opencontainers.image.title and .version are set",
        "an administrator who finds the image in a cluster sees what it is",
        "LABEL org.opencontainers.image.title=... org.opencontainers.image.version=...",
        None,
    ),
    Point(
        "size",
        "no package caches are in the layers",
        "every node pulls them before the first rank starts",
        "install with RUN --mount=type=cache,target=/var/cache/apt, or remove the caches in the same RUN",
        None,
    ),
)

# The order matters: each point needs the one before it. The check tries them once for each profile.
LIVE = (
    Point(
        "live-worker",
        "a worker starts sshd and listens",
        "a job cannot start without it",
        "correct the points that this profile needs",
        Profile.OWN,
    ),
    Point(
        "live-ssh",
        "the launcher logs in with the job's key, and the worker has the job's host key",
        "mpirun starts every rank this way",
        "correct the points that this profile needs",
        Profile.OWN,
    ),
    Point(
        "live-path",
        "mpirun and its daemon are in the PATH of a command that ssh runs",
        "mpirun calls its daemon on the worker by name, and such a command has sshd's PATH, not the image's",
        "link them into /usr/bin: RUN ln -s /opt/your-mpi/bin/* /usr/bin/",
        None,
    ),
    Point(
        "live-ranks",
        "mpirun starts 4 ranks, 2 on each of two containers",
        "if all ranks run on one host, the job looks healthy but is slow",
        "correct the points that this profile needs",
        Profile.OWN,
    ),
    Point(
        "live-allreduce",
        "an allreduce over the 4 ranks gives the right sum",
        "it needs the libraries, the network and the shared memory that programs need",
        "correct the points that this profile needs",
        Profile.OWN,
    ),
)

POINTS = {point.id: point for point in (*STATIC, *LIVE)}
