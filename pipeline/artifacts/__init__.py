"""The artifact store: what stages left, found by digests."""
