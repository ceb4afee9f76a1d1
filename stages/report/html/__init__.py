"""report.html: a single self-contained page."""

# Placeholder in the page. The pipeline replaces it with data of the run: keys, tools, the command.
RUN = "<!-- of this run -->"
