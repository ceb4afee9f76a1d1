"""Evidence for a safety or security review of a release, from the artifacts of a run."""
