"""S3 data: downloaded before the run, uploaded after it."""
