"""Options of locks and heartbeats (Java Hudi HoodieLockConfig, StorageBasedLockConfig), and the lock providers of Java
Hudi that are supported here.
"""

from __future__ import annotations

from hoodie_py.options.parse import Option, Real, Text

WAIT_MS = Real("hoodie.write.lock.wait_time_ms", 60_000)  # how long to wait for a lock in all
RETRY_WAIT_MS = Real("hoodie.write.lock.wait_time_ms_between_retry", 1000)
FILE_SYSTEM_PATH = Text("hoodie.write.lock.filesystem.path")  # folder of the lock file
FILE_SYSTEM_EXPIRE = Real("hoodie.write.lock.filesystem.expire", 0)  # minutes; 0: never
STORAGE_VALIDITY = Real("hoodie.write.lock.storage.validity.timeout.secs", 300)
STORAGE_RENEW = Real("hoodie.write.lock.storage.renew.interval.secs", 30)
HEARTBEAT_INTERVAL_MS = Real("hoodie.client.heartbeat.interval_in_ms", 60_000)
HEARTBEAT_MISSES = Real("hoodie.client.heartbeat.tolerable.misses", 2)

OPTIONS: tuple[Option, ...] = (
    WAIT_MS, RETRY_WAIT_MS, FILE_SYSTEM_PATH, FILE_SYSTEM_EXPIRE, STORAGE_VALIDITY, STORAGE_RENEW,
    HEARTBEAT_INTERVAL_MS, HEARTBEAT_MISSES,
)  # fmt: skip

_PACKAGE = "org.apache.hudi.client.transaction.lock"
FILE_SYSTEM_PROVIDER = f"{_PACKAGE}.FileSystemBasedLockProvider"
STORAGE_PROVIDER = f"{_PACKAGE}.StorageBasedLockProvider"
IN_PROCESS_PROVIDER = f"{_PACKAGE}.InProcessLockProvider"
NOOP_PROVIDER = f"{_PACKAGE}.NoopLockProvider"
