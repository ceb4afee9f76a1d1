"""The operating system: files, folders, programs and their limits."""
