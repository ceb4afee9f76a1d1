"""The emitted sources as other ecosystems want them: one form for each, found by its name (`doit export`)."""
