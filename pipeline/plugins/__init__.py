"""What a project and installed packages add: found, imported with errors that name the plug-in, and registered."""
