"""The recipe language and its runner. Never imports tvm."""
