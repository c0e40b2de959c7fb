"""Updates of file groups that a pending clustering replaces (Hudi ``UpdateStrategy``).

Such updates are refused. If the options allow them and say that the clustering goes, it is rolled back first: a plan
whose file groups have changed can never be carried out, and to carry it out nevertheless would lose the update.
"""

from __future__ import annotations

from hoodie_py.errors import ConflictError, UnsupportedFeatureError
from hoodie_py.options.clustering import ROLLBACK_ON_CONFLICT, UPDATES_STRATEGY
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.clustering.cluster import Clustering
from hoodie_py.writer.rollback.rollback import rollback
from hoodie_py.writer.timeline.session import WriteSession

_REJECT, _ALLOW = "SparkRejectUpdateStrategy", "SparkAllowUpdateStrategy"
_KNOWN = (_REJECT, _ALLOW)


def roll_back_for_update(session: WriteSession, refused: ConflictError) -> Snapshot:
    """Roll back the clusterings that refuse a write if the options say so, and return the table after that.

    Every pending one goes, as the records may belong to file groups of several.

    Raises:
        ConflictError: the given one, if the options do not allow it.
        UnsupportedFeatureError: another strategy of updates.
    """
    options = session.settings.options
    strategy = (UPDATES_STRATEGY.read(options) or _REJECT).rpartition(".")[2]
    if strategy not in _KNOWN:
        raise UnsupportedFeatureError(
            f"The strategy {strategy[:80]!r} for updates beside a clustering.", hint=f"Handled: {', '.join(_KNOWN)}."
        )
    if strategy == _REJECT or not ROLLBACK_ON_CONFLICT.read(options):
        raise refused
    for pending in Clustering().list_pending(session.look()):
        rollback(session, pending.request_time)
    return session.look()
