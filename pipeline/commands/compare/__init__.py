"""`doit compare A B`: two runs side by side, what differs first."""
