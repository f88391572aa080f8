"""Where the values of policies come from: registered sources, asked at recall, never stored."""
