"""A real Kubernetes for the tests, on a machine that has none: built from Go modules, started as plain processes."""
