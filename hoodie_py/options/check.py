"""Checks options, so that none is ignored silently.

* A declared option that concerns the call (``read``, ``write``, ``source``) must have a valid value.
* An option that asks for a feature of Java Hudi that is missing here is an error or a warning (``undone``).
* An option of Java Hudi that needs no action here is accepted: rows, table and history are the same whatever its value
  (``list_passed_over``).
* An unknown name that resembles a known one is an error. Other names are ignored, as in Java: mergers may have
  their own options.

The declared options, the ones in ``undone`` and the passed over ones are together all options of Java Hudi 1.2.0, with
their alternative names, and of 0.14; such a name is not a misspelling.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache

from hoodie_py.errors import HoodieWarning, InvalidQueryError
from hoodie_py.formats.config import table_config
from hoodie_py.options import clustering, indexes, log_compaction, read, source, sync, undone, write
from hoodie_py.options.parse import Option
from hoodie_py.options.undone import UnsupportedOption

OF_READS: tuple[Option, ...] = read.OPTIONS
OF_WRITES: tuple[Option, ...] = (
    *read.OPTIONS,
    *write.OPTIONS,
    *indexes.OPTIONS,
    *clustering.OPTIONS,
    *log_compaction.OPTIONS,
    *source.OPTIONS,
    *source.OF_NEW_TABLES,
    *sync.OPTIONS,
)

_HUDI, _OURS = "hoodie.", "hoodie_py."
_OWN_PREFIXES = (*table_config.TIMESTAMP_KEYGEN_PREFIXES, table_config.MERGE_PROPERTY_PREFIX)
_SIMILAR = 0.88

_MERGE_PROPERTIES = (
    read.DELETE_FIELD, read.DELETE_MARKER, read.UNAVAILABLE_VALUE, read.ORDERING_FIELDS_PROPERTY,
    read.ORDERING_FIELD_PROPERTY, read.SAME_ORDERING_UPDATES,
)  # fmt: skip


def check_read_options(options: Mapping[str, str]) -> None:
    """Check the options of a read; options of writes are ignored.

    Raises:
        InvalidQueryError: a value is not valid, or a name resembles a known one.
        UnsupportedFeatureError: an option asks for rows that a read does not return.
    """
    _check(options, OF_READS, undone.OF_READS)


def check_write_options(options: Mapping[str, str], *, warn: bool = True) -> None:
    """Check the options of a write or a table service; both also read, so options of reads count.

    ``warn=False`` suppresses the warnings of unsupported options, for calls that check twice.

    Raises:
        InvalidQueryError: a value is not valid, or a name resembles a known one.
        UnsupportedFeatureError: an option asks for a table that a write does not make.
    """
    _check(options, OF_WRITES, (*undone.OF_READS, *undone.OF_WRITES), warn=warn)
    sync.find_kinds(options)


def check_table_properties(given: Mapping[str, str]) -> None:
    """Check the properties of a new table; options of reads and writes are not properties.

    Raises:
        InvalidQueryError: a value is not valid, a name resembles a known one, or a name is an option's name.
        UnsupportedFeatureError: the kind of table is not supported.
    """
    _check(given, source.OF_NEW_TABLES, ())
    stored = {*_list_names(source.OF_NEW_TABLES), *_list_property_names()}
    options = {*_list_names(OF_WRITES), *(each.option for each in (*undone.OF_READS, *undone.OF_WRITES))}
    for name in given:
        if name in options - stored and name not in _MERGE_PROPERTIES and not name.startswith(_OWN_PREFIXES):
            raise InvalidQueryError(
                f"{name} is an option of reads or writes and no property of a table.",
                hint="Give it to these as options.",
            )


def _check(
    options: Mapping[str, str], concerned: Iterable[Option], not_done: Iterable[UnsupportedOption], *, warn: bool = True
) -> None:
    for name in options:
        if not _is_known(name):
            _refuse_similar(name)
    if not options:
        return
    for option in concerned:
        option.check(options)
    for each in not_done:
        if each.is_asked(options):
            if each.refused:
                each.refuse(options)
            if warn:
                warnings.warn(HoodieWarning(each.message), stacklevel=4)


def _refuse_similar(name: str) -> None:
    """Refuse a name that resembles a known one."""
    meant = _list_known().get(name.lower())
    if meant is None:
        begin = _HUDI if name.lower().startswith(_HUDI) else ""
        meant = _find_closest(name.lower().removeprefix(begin), begin)
    if meant is not None:
        raise InvalidQueryError(f"Unknown option {name[:200]!r}.", hint=f"Did you mean {meant}?")
    if name.startswith(_OURS):
        raise InvalidQueryError(f"Unknown option {name!r}.", hint=f"There is {read.READ_THREADS}.")


def _find_closest(rest: str, begin: str) -> str | None:
    candidates = {known.removeprefix(begin): meant for known, meant in _list_known().items() if known.startswith(begin)}
    if not begin:
        candidates = {known: known for known in (str(read.AS_OF_INSTANT), str(read.READ_THREADS))}
    found = difflib.get_close_matches(rest, candidates, 1, _SIMILAR)
    return candidates[found[0]] if found else None


def _is_known(name: str) -> bool:
    if "." not in name or name.startswith(_OWN_PREFIXES) or name in _list_declared():
        return True
    known = _list_known().get(name) or _list_known().get(name.lower())
    return known is not None and (name in (known, known.lower()))


@lru_cache(maxsize=1)
def _list_declared() -> frozenset[str]:
    undone_names = (each.option for each in (*undone.OF_READS, *undone.OF_WRITES))
    return frozenset((*_list_names(OF_WRITES), *_list_names(undone_names), *_list_property_names()))


@lru_cache(maxsize=1)
def _list_known() -> dict[str, str]:
    """Return every known name by its lower-case form, in which Spark passes names."""
    return {name.lower(): name for name in (*sorted(list_passed_over()), *sorted(_list_declared()))}


def _list_names(options: Iterable[Option]) -> tuple[str, ...]:
    return tuple(name for option in options for name in option.names)


@lru_cache(maxsize=1)
def _list_property_names() -> frozenset[str]:
    values = [value for name, value in vars(table_config).items() if name.isupper()]
    return frozenset(value for value in values if isinstance(value, str) and value.startswith(_HUDI))


_REASONS = {
    (
        "They divide Java's work into tasks, threads and batches of its own, and choose what its executors buffer and "
        "cache."
    ): """
    hoodie.archive.delete.parallelism hoodie.bulkinsert.are.partitioner.records.sorted
    hoodie.cdc.file.group.iterator.memory.spill.bytes hoodie.expression.index.range.metadata.storage.level
    hoodie.fileIndex.dataSkippingFailureMode hoodie.finalize.write.parallelism
    hoodie.optimized.log.blocks.scan.enable hoodie.release.resource.on.completion.enable hoodie.rollback.parallelism
    hoodie.schema.cache.enable hoodie.spark.sql.optimized.writes.enable hoodie.table.services.incremental.enabled
    hoodie.bloom.index: bucketized.checking bucketized.checking.enable.dynamic.parallelism fileid.key.sorting.enable
      input.storage.level keys.per.bucket parallelism prune.by.ranges use.caching use.metadata use.treebased.filter
    hoodie.bucket.index: query.pruning remote.partitioner.enable
    hoodie.clean: incremental.enabled optimize.using.local.engine.context parallelism
    hoodie.cleaner: incremental.mode parallelism
    hoodie.clustering: group.read.parallelism max.parallelism plan.generation.use.local.engine.context
    hoodie.common: diskmap.compression.enabled spillable.diskmap.type
    hoodie.compaction: lazy.block.read reverse.log.read
    hoodie.datasource: hive_sync.batch_num hive_sync.filter_pushdown_enabled hive_sync.filter_pushdown_max_size
      read.file.index.list.partitions.from.catalog read.file.index.listing.mode
      read.file.index.listing.partition-path-prefix.analysis.enabled
      read.file.index.optimize.listing.using.path.filter
    hoodie.file: group.reader.enabled index.cache.spillable.mem index.cache.use.spillable.map index.enable
      listing.parallelism
    hoodie.global: index.reconcile.parallelism simple.index.parallelism
    hoodie.hfile.block.cache: enabled size ttl.minutes
    hoodie.layout.optimize: build.curve.sample.size data.skipping.enable
    hoodie.markers: delete.parallelism timeline_server_based.batch.interval_ms
      timeline_server_based.batch.num_threads
    hoodie.memory: compaction.fraction dfs.buffer.max.size merge.fraction writestatus.failure.fraction
    hoodie.meta.sync: incremental metadata_file_listing
    hoodie.metadata: file.cache.max.size.mb index.bloom.filter.parallelism index.check.timeout.seconds
      index.column.stats.inMemory.projection.threshold index.column.stats.parallelism
      index.column.stats.processing.mode.override index.expression.parallelism index.partition.stats.parallelism
      index.secondary.parallelism max.init.parallelism max.reader.buffer.size max.reader.memory
      optimized.log.blocks.scan.enable range.repartition.random.seed range.repartition.sampling.fraction
      range.repartition.target.records.per.partition record.preparation.parallelism repartition.default.partitions
      repartition.min.partitions.threshold spillable.map.path
      streaming.write.datatable.write.statuses.coalesce.divisor streaming.write.enabled
    hoodie.record.index: input.storage.level use.caching
    hoodie.simple.index: input.storage.level parallelism use.caching
    hoodie.write: buffer.limit.bytes buffer.record.cache.limit buffer.record.sampling.rate
      executor.disruptor.buffer.limit.bytes executor.disruptor.wait.strategy executor.type status.storage.level
      tagged.record.storage.level
    """,
    (
        "They are about servers and file views of Java's own; no server runs here, and a listing is by the metadata "
        "table or by folders."
    ): """
    hoodie.metaserver
    hoodie.embed.timeline: server server.async server.gzip server.port server.reuse.enabled server.threads
    hoodie.filesystem: remote.backup.view.enable view.incr.timeline.sync.enable view.remote.host view.remote.port
      view.remote.retry.enable view.remote.retry.exceptions view.remote.retry.initial_interval_ms
      view.remote.retry.max_interval_ms view.remote.retry.max_numbers view.remote.timeout.secs
      view.rocksdb.base.path view.secondary.type view.spillable.bootstrap.base.file.mem.fraction
      view.spillable.clustering.mem.fraction view.spillable.compaction.mem.fraction view.spillable.dir
      view.spillable.log.compaction.mem.fraction view.spillable.mem view.spillable.replaced.mem.fraction view.type
    hoodie.metaserver: connect.retries connect.retry.delay uris
    """,
    (
        "They say how stores are reached and what they promise; that is a matter of `storage_options` here, and stores "
        "are taken to be consistent."
    ): """
    _hoodie.optimistic.consistency.guard.enable hoodie.fs.atomic_creation.support hoodie.io.factory.class
    hoodie.optimistic.consistency.guard.sleep_time_ms hoodie.storage.class
    hoodie.aws: access.key secret.key session.token
    hoodie.consistency.check: enabled initial_interval_ms max_checks max_interval_ms
    hoodie.filesystem.operation.retry: enable exceptions initial_interval_ms max_interval_ms max_numbers
    """,
    "They go with another option or operation, which is refused or warned of when it is given.": """
    hoodie.clean.hours.retained hoodie.cleaner.hours.retained hoodie.copyonwrite.insert.split.size
    hoodie.hbase.index.update.partition.path hoodie.metrics hoodie.payload.event.time.field
    hoodie.rollback.instant.backup.dir
    hoodie.bootstrap: full.input.provider index.enable mode.selector mode.selector.regex mode.selector.regex.mode
      parallelism partitionpath.translator.class
    hoodie.clustering: expiration.threshold.mins plan.strategy.binary.copy.schema.evolution.enable
      plan.strategy.earliest.commit.to.cluster
    hoodie.datasource: hive_sync.bucket_sync_spec hive_sync.jdbcurl hive_sync.password hive_sync.use_jdbc
      hive_sync.username write.streaming.retry.interval.ms
    hoodie.errortable: base.path insert.shuffle.parallelism source.rdd.persist target.table.name
      upsert.shuffle.parallelism validate.recordcreation.enable validate.targetschema.enable write.class
      write.failure.strategy write.union.enable
    hoodie.index.hbase: bucket.number desired_puts_time_in_secs dynamic_qps get.batch.size kerberos.user.keytab
      kerberos.user.principal master.kerberos.principal max.qps.fraction max.qps.per.region.server min.qps.fraction
      put.batch.size put.batch.size.autocompute qps.allocator.class qps.fraction regionserver.kerberos.principal
      rollback.sync security.authentication sleep.ms.for.get.batch sleep.ms.for.put.batch table
      zk.connection_timeout_ms zk.session_timeout_ms zknode.path zkpath.qps_root zkport zkquorum
    hoodie.metadata: bloom.filter.dynamic.max.entries bloom.filter.fpp bloom.filter.num.entries bloom.filter.type
      compact.max.delta.seconds log.compaction.blocks.threshold table.service.manager.actions
    hoodie.metrics: cloudwatch cloudwatch.maxDatumsPerRequest cloudwatch.metric.prefix cloudwatch.namespace
      cloudwatch.report.period.seconds configs.properties datadog datadog.api.key datadog.api.key.skip.validation
      datadog.api.key.supplier datadog.api.site datadog.api.timeout.seconds datadog.metric.host
      datadog.metric.prefix datadog.metric.tags datadog.report.period.seconds graphite graphite.host
      graphite.metric.prefix graphite.port graphite.report.period.seconds jmx jmx.host jmx.port m3 m3.env m3.host
      m3.port m3.service m3.tags prometheus prometheus.port pushgateway pushgateway.delete.on.shutdown
      pushgateway.host pushgateway.job.name pushgateway.port pushgateway.random.job.name.suffix
      pushgateway.report.labels pushgateway.report.period.seconds reporter.class reporter.metricsname.prefix
      reporter.type
    hoodie.partition.ttl: management.strategy.type strategy strategy.class strategy.days.retain
      strategy.max.delete.partitions strategy.partition.selected
    hoodie.precommit.validators: equality.sql.queries failure.policy inequality.sql.queries single.value.sql.queries
      streaming.offset.tolerance.percentage
    hoodie.table.service: manager manager.actions manager.connection.retries manager.connection.retry.delay.sec
      manager.connection.timeout.sec manager.deploy.extra.params manager.deploy.parallelism manager.deploy.queue
      manager.deploy.resources manager.deploy.username manager.execution.engine manager.uris
    hoodie.write: commit.callback commit.callback.class commit.callback.http.api.key
      commit.callback.http.custom.headers commit.callback.http.timeout.seconds commit.callback.http.url concurrency
      concurrency.async.conflict.detector.initial_delay_ms concurrency.async.conflict.detector.period_ms
      concurrency.early.conflict.check.commit.conflict concurrency.early.conflict.detection.strategy lock
      lock.app_id lock.dynamodb lock.dynamodb.billing_mode lock.dynamodb.endpoint_url lock.dynamodb.partition_key
      lock.dynamodb.read_capacity lock.dynamodb.region lock.dynamodb.table lock.dynamodb.table_creation_timeout
      lock.dynamodb.write_capacity lock.filesystem lock.heartbeat_interval_ms lock.hivemetastore
      lock.hivemetastore.database lock.hivemetastore.table lock.hivemetastore.uris
      lock.max_wait_time_ms_between_retry lock.num_retries lock.storage lock.zookeeper lock.zookeeper.base_path
      lock.zookeeper.connection_timeout_ms lock.zookeeper.lock_key lock.zookeeper.port
      lock.zookeeper.session_timeout_ms lock.zookeeper.url rolling.metadata.timeline.lookback.commits
    """,
    (
        "They are about files that are not written here: base files are Parquet, log blocks are Avro, and Flink has "
        "writers of its own."
    ): """
    hoodie.logfile.to.parquet.compression.ratio hoodie.metadata.max.logfile.size
    hoodie.hfile: block.size compression.algorithm max.file.size writes.allow.duplicates
    hoodie.lance: max.file.size read.allocator.size.bytes read.metadata.allocator.size.bytes
      write.allocator.size.bytes write.flush.byte.watermark
    hoodie.orc: block.size compression.codec max.file.size stripe.size
    hoodie.parquet: compression.ratio field_id.write.enabled flink.rowdata.write.support.class
      write.utc-timezone.enabled
    """,
    "They say how Java guesses the size of a row; here the rows of the write are measured.": """
    _hoodie.record.size.estimator.max.commits hoodie.copyonwrite.record.size.estimate
    hoodie.record.size: estimation.threshold estimator.average.metadata.size estimator.class
    """,
    "Java sets them for itself, or overwrites what is given.": """
    _hoodie.metadata.ignore.spurious.deletes _hoodie.time.generator.reuse.enable hoodie.auto.adjust.lock.configs
    hoodie.base.path hoodie.is.update.record.for.mor hoodie.payload.record.schema hoodie.read.columns.set
    hoodie.realtime.merge.skip hoodie.schema.internal.querySchema hoodie.support.payload hoodie.tablePath
    hoodie.time.generator.type hoodie.valid.commits.list hoodie.vector.columns
    hoodie.avro: schema schema.external.transformation schema.externalTransformation
    hoodie.bulkinsert: overwrite.operation.type schema.ddl
    hoodie.internal: schema spark.streaming.batch.id sql.merge.into.writes write.schema.canonicalize
    hoodie.write: application.id merge.handle.fallback
    """,
    (
        "The table's `hoodie.properties` says it, whatever is given; hoodie_py writes it when it makes or changes the "
        "table."
    ): """
    hoodie.timeline.layout.version
    hoodie.bootstrap.index: class type
    hoodie.record.merge: property property.hoodie.payload.delete.field property.hoodie.payload.delete.marker
      property.hoodie.write.partial.update.unavailable.value
    hoodie.table: checksum create.schema index.defs.path initial.version legacy.payload.class metadata.partitions
      metadata.partitions.inflight secondary.indexes.metadata
    """,
    "What they switch on is always so, or cannot happen here.": """
    hoodie.avro.schema.validate hoodie.block.writes.on.speculative.execution
    hoodie.datasource.write.streaming.disable.compaction hoodie.fail.job.on.duplicate.data.file.detection
    hoodie.post.commit.failures.ignored hoodie.sensitive.config.keys
    hoodie.clean: allow.multiple multiple.enabled
    hoodie.metadata: derive.from.datatable.clean.policy max.deltacommits.when_pending
      write.fail.on.table.service.failures
    hoodie.rollback: avoid.duplicate.plan using.markers
    hoodie.write: can.ignore.post.commit.failures markers.type
    """,
    (
        "They are read by the SQL statements of Java's Spark extension, by Hudi Streamer, or by Hive, which do not run "
        "here."
    ): """
    hoodie.deltastreamer hoodie.streamer
    hoodie.deltastreamer: keygen.timebased schemaprovider schemaprovider.registry.targetUrl
      schemaprovider.registry.url schemaprovider.source.schema.file schemaprovider.target.schema.file
      source.kafka.value.deserializer.class
    hoodie.spark: polaris.catalog.class sql.insert.into.operation
    hoodie.sql: bulk.insert.enable insert.mode
    hoodie.streamer: schemaprovider schemaprovider.class schemaprovider.registry.targetUrl
      schemaprovider.registry.url schemaprovider.source.schema.file schemaprovider.target.schema.file
      source.kafka.value.deserializer.class
    """,
    "Java Hudi 1.2.0 has no such option, older versions had it; or it is a prefix of others.": """
    hoodie.assume.date.partitioning hoodie.clustering.plan.strategy hoodie.incremental.use.database
    hoodie.keygen.timebased hoodie.layout.optimize hoodie.metadata hoodie.metadata.fallback.enable
    hoodie.archive: limit.instants merge.enable merge.files.batch.size merge.small.file.limit.bytes
    hoodie.datasource: hive_sync.assume_date_partitioning hive_sync.use_pre_apache_input_format meta.sync.glue
      write.new.columns.nullable
    """,
}


@lru_cache(maxsize=1)
def list_passed_over() -> dict[str, str]:
    """Return the reason why no action is needed for each accepted name."""
    found: dict[str, str] = {}
    for reason, names in _REASONS.items():
        begin = ""
        for word in names.split():
            if word.endswith(":"):
                begin = word[:-1]
            else:
                found[begin if word == "." else f"{begin}.{word}" if begin else word] = reason
    return found
