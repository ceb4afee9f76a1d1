"""Code of `doit bench suite=layers`. No run uses it."""
