"""Who wins: mergers, merge modes, partial updates (RFC-101)."""
