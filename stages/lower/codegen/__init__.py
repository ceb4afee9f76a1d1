"""C from TIR: functions over plain pointers, printed for people to read.

Below tensorize, which asks how much scratch a layer's function needs, and emit, which writes what is printed.
"""
