"""`doit compare A B`: compare two runs, the largest differences first."""
