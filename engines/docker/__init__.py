"""A job as containers of a Docker engine, on a network of their own."""
