"""The local web page of runs, and plots of them."""
