"""C from TIR: functions over plain pointers, printed for people to read.

Tensorize uses it to find a layer's scratch, and emit writes the printed functions.
"""
