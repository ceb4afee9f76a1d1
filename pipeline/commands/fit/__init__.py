"""`doit fit`: which boards a network fits, with RAM, ROM and time on each.

command.py         the command line
request.py         the boards, and the recipe of each
measure.py         runs the stages of all boards in parallel; a network that is too large, on a larger board
row.py             the result of a board, and the order of the results
table.py, page.py  the results in a terminal, and as HTML
"""
