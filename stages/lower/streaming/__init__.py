"""Run layers by rows, not whole images: the arena holds a few rows of each tensor.

row_window  the rows of its inputs that a layer needs for a row of its output
row_places  those of data movement and resizes
window    which layers can run by rows, and their windows
schedule  the order in which the layers of a group make rows, and the rows that each tensor must hold
outline   schedules of candidates, in less time
row_counts  the rows of a layer's calls
groups    where groups begin and end: the search
ends      why a group ends where it ends
plan      the result, as stored in tensorize's plan
bands     a layer on a few rows, for the choice of its kernel

A *streamed group* is a run of consecutive layers. Each layer makes a few rows whenever a reader needs them, so nothing
is computed twice. Each tensor inside the group has a *rolling buffer*: rows that no reader needs any more give way, and
the rest moves to the start of the buffer. Padding above and below the image is stored as rows too, so that a kernel
sees an ordinary image of few rows without vertical padding.

Pure Python.
"""
