"""Options of locks and heartbeats by the names Java Hudi gives them (HoodieLockConfig, StorageBasedLockConfig), and the
names of the lock providers that have a counterpart here.
"""

from __future__ import annotations

WAIT_MS = "hoodie.write.lock.wait_time_ms"  # how long to wait for a lock in all
RETRY_WAIT_MS = "hoodie.write.lock.wait_time_ms_between_retry"
FILE_SYSTEM_PATH = "hoodie.write.lock.filesystem.path"  # folder of the lock file
FILE_SYSTEM_EXPIRE = "hoodie.write.lock.filesystem.expire"  # minutes; 0: never
STORAGE_VALIDITY = "hoodie.write.lock.storage.validity.timeout.secs"
STORAGE_RENEW = "hoodie.write.lock.storage.renew.interval.secs"
HEARTBEAT_INTERVAL_MS = "hoodie.client.heartbeat.interval_in_ms"
HEARTBEAT_MISSES = "hoodie.client.heartbeat.tolerable.misses"

_PACKAGE = "org.apache.hudi.client.transaction.lock"
FILE_SYSTEM_PROVIDER = f"{_PACKAGE}.FileSystemBasedLockProvider"
STORAGE_PROVIDER = f"{_PACKAGE}.StorageBasedLockProvider"
IN_PROCESS_PROVIDER = f"{_PACKAGE}.InProcessLockProvider"
NOOP_PROVIDER = f"{_PACKAGE}.NoopLockProvider"

SINGLE_WRITER = "single_writer"
