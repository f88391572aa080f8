"""What only people on pages do."""
