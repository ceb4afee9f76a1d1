"""What all other code builds on: messages to people, options from YAML, the operating system."""
