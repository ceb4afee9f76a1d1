"""report.html: one file with everything in it, to look at; nothing is loaded from elsewhere."""

# In the page, where the pipeline puts what is only known of a run: keys, tools, how to repeat it.
RUN = "<!-- of this run -->"
