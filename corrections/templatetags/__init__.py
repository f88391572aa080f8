"""How values are shown in templates."""
