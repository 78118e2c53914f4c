"""A job on a Kubernetes cluster, run as if it were here."""
