"""simplify: work that the integer graph need not do, taken out of it bit for bit."""
