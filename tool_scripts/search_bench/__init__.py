"""Parts of the search-policy benchmark."""
