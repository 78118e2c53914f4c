"""The minimal Kubernetes operator for MPIJobs."""
