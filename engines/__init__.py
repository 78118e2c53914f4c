"""A whole job on this machine: on containers or on processes."""
