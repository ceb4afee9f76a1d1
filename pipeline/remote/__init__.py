"""Remote stores: artifacts shared by machines, over Bazel's HTTP cache protocol and others."""
