"""Memory records: what may be remembered, what recall decides, how things end. docs/records.md tells the model."""
