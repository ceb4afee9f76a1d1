"""Advice: changes that can save time, RAM or ROM.

Figures of the run prove each, and a command tries it.
"""
