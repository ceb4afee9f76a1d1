"""report.html: a single self-contained page."""

# Placeholder in the page. The pipeline replaces it with data of the run: keys, tools, the command.
RUN = "<!-- of this run -->"


def command_mark(number: int) -> str:
    """Return the placeholder for the command of advice number `number`, in HTML and Markdown."""
    return f"<!-- command {number} -->"
