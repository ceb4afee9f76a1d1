"""Chains: a front end, networks and a smoother in one model."""
