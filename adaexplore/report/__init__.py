"""Numbers and tables out of records; reads only."""
