"""Commands that list what there is: `doit targets`, `doit boards`, `doit kernels`, `doit operators`."""
