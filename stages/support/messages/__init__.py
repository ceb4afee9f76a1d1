"""Messages for people: safe text for each destination, and the errors of stages."""
