"""Exit codes of commands, besides 0.

    FAILED    an error: wrong command line, wrong recipe, failed run; stderr has a line `ERROR: …`
    PENDING   no error, but something is pending, larger than allowed, or missing; the output lists it

An interrupted command exits with 128 plus the signal's number.
"""

FAILED = 1
PENDING = 3
