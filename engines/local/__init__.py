"""A job as processes of this machine: sshd on loopback addresses, and this very mpiboot as launcher and worker."""
