"""Lance base files, decoded in processes of their own."""
