"""report.html: a single self-contained page."""

# Placeholder in the page. The pipeline replaces it with data of the run: keys, tools, the command.
RUN = "<!-- of this run -->"


def command_mark(number: int) -> str:
    """Return the placeholder, in HTML and Markdown, of the command of an entry of the advice."""
    return f"<!-- command {number} -->"
