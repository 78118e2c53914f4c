"""The one Kubernetes client: requests, kinds, and small projections of objects."""
