"""Writing to tables: instants, locks, markers, compaction, rollback and clean (Hudi's write client and table services).

All access goes through ``TableFiles``; bytes are made in ``formats``, rows are merged in ``reader``.
"""
