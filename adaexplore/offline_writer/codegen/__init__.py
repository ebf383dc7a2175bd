"""Write Triton kernels and their launchers for the values of a graph."""
