"""Stages on other machines: tasks of dask.distributed, which get and leave artifacts in a store that all share."""
