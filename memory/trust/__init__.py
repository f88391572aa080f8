"""Whether what an agent wrote may be served, or waits for a person: the detector of instructions."""
