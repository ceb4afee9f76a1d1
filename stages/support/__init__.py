"""Code that everything else builds on: messages, options from YAML, the operating system."""
