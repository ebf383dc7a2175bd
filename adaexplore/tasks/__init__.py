"""Task sources: problem folders, synthesised sets, single files and test lists."""
