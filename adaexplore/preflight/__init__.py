"""What needs no judge: lints that find drafts which cannot work."""
