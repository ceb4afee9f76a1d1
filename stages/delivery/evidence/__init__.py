"""Evidence for a release: what a safety or security review asks for, from the artifacts of a run."""
