"""SQL filters: parsing, evaluation by Spark's rules, and which files and rows they exclude."""
