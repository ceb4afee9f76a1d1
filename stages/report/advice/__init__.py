"""Advice: changes that can save time, RAM or ROM.

Each has figures of the run as proof, and a command that tries it.
"""
