"""A writer of Triton kernels that needs no model: module AST to Triton."""
