"""Change rows by expressions: updates and merges (Hudi's UPDATE and MERGE INTO)."""
