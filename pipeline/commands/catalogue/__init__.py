"""Commands that list targets, boards, kernels and operators."""
