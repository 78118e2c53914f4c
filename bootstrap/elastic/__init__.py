"""What only elastic jobs need: the list of hosts, discovery, Horovod's settings."""
