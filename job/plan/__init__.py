"""A Job becomes its plan: every object of the job as plain data."""
