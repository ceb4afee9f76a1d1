"""What is said to people: names and messages made safe for where they are shown, and errors of stages."""
