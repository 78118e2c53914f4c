"""The launcher runs the command: access, hostfile, environment, supervision, clean-up."""
