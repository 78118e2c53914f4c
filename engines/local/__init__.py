"""A job as processes of this machine: sshd on loopback addresses, and this mpiboot itself as launcher and worker."""
