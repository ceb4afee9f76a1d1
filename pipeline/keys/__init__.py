"""Actions and their keys: what each is made of, and why one changed."""
