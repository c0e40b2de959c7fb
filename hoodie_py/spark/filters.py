from __future__ import annotations
def as_predicate(filters, exact, table):
    return None, list(filters)
