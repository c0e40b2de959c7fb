"""What a read may hold in memory, and the files it spills to."""
