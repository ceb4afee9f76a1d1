"""The artifact store, addressed by digests."""
