"""What runs in the launcher and in the workers of a job, from the start of the container to its end."""
