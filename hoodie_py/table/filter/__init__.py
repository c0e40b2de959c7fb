"""SQL filters: text to predicate, evaluation as Spark's, and what they may skip."""
