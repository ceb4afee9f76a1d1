"""A remote store: artifacts that several machines share, by Bazel's HTTP cache protocol or in a bucket or folder."""
