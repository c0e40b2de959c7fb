"""Options of users, by the names that Java Hudi has for them: each is declared once, with its kind and default."""
