"""Actions, their keys, and the reasons why a key changed."""
