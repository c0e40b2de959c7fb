"""Options that users give, by the names Java Hudi has for them: which there are, and what their texts mean."""
