"""What a command ends with: 0, and two others that never mean the same.

    FAILED    something went wrong, on the command line, in a recipe or while running; `ERROR:` on stderr says what
    PENDING   nothing went wrong, and what the command looks for is there: work that would run, figures that grew,
              measurements, tools or artifacts that are not as they should be; what is printed says which

A command that is interrupted ends with 128 and the signal's number.
"""

FAILED = 1
PENDING = 3
