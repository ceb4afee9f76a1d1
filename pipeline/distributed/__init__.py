"""Stages on other machines: tasks of dask.distributed; artifacts go through a shared store."""
