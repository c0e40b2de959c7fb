"""Options of users, under Java Hudi's names: each is declared once, with its kind and default."""
