"""Plug-ins: discovery, import, and the registry of stages."""
