"""Models: where a recipe's network comes from (file, url, zoo, single operator)."""
