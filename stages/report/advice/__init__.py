"""Advice: what could save time, RAM or ROM, proved by the figures of the run, with the command that tries it."""
