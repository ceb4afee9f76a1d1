"""What `doit bench suite=layers` needs; no part of a run."""
