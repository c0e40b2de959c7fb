"""Names of the options of Java Hudi 1.2.0 and 0.14: such a name is not a misspelling, even if it has no effect here.

Most of them say how Java does its work, or concern features that are missing here. Each line is a prefix without
``hoodie.``, and the rest of each name that begins with it (a point for an empty rest).
"""

from __future__ import annotations

from functools import lru_cache

_NAMES = """
allow: empty.commit operation.metadata.field
archive: async automatic beyond.savepoint block.on.latest.clean.ectr delete.parallelism limit.instants merge.enable
  merge.files.batch.size merge.small.file.limit.bytes
archivelog: folder
assume: date.partitioning
auto: adjust.lock.configs commit
avro: schema schema.validate write.support.class
aws: access.key secret.key session.token
base: file.format path
block: writes.on.speculative.execution
bloom: index.bucketized.checking index.bucketized.checking.enable.dynamic.parallelism index.fileid.key.sorting.enable
  index.filter.dynamic.max.entries index.filter.type index.input.storage.level index.keys.per.bucket index.parallelism
  index.prune.by.ranges index.update.partition.path index.use.caching index.use.metadata index.use.treebased.filter
bootstrap: base.path data.queries.only full.input.provider index.class index.enable index.type mode.selector
  mode.selector.regex mode.selector.regex.mode parallelism partitionpath.translator.class
bucket: index.hash.field index.max.num.buckets index.merge.threshold index.min.num.buckets index.num.buckets
  index.partition.expressions index.partition.rule.type index.query.pruning index.remote.partitioner.enable
  index.split.threshold
bulkinsert: are.partitioner.records.sorted overwrite.operation.type schema.ddl shuffle.parallelism sort.mode
  sort.suffix.record_key user.defined.partitioner.class user.defined.partitioner.sort.columns
cdc: file.group.iterator.memory.spill.bytes
clean: allow.multiple async async.enabled automatic commits.retained delete.bootstrap.base.file failed.writes.policy
  fileversions.retained hours.retained incremental.enabled max.commits max.commits.to.clean multiple.enabled
  optimize.using.local.engine.context parallelism partition.filter.regex partition.filter.selected policy
  trigger.max.commits trigger.strategy
cleaner: commits.retained delete.bootstrap.base.file fileversions.retained hours.retained incremental.mode parallelism
  partition.filter.regex partition.filter.selected policy policy.failed.writes
client: heartbeat.interval_in_ms heartbeat.tolerable.misses init.callback.classes
clustering: async.enabled async.max.commits enable.expirations execution.strategy.class expiration.threshold.mins
  fail.on.pending.ingestion.during.conflict.resolution group.read.parallelism inline inline.max.commits
  max.parallelism rollback.pending.replacecommit.on.conflict schedule.inline updates.strategy
clustering.plan: generation.use.local.engine.context partition.filter.mode strategy
  strategy.binary.copy.schema.evolution.enable strategy.class strategy.cluster.begin.partition
  strategy.cluster.end.partition strategy.daybased.lookback.partitions strategy.daybased.skipfromlatest.partitions
  strategy.earliest.commit.to.cluster strategy.file.slices.sort.by strategy.max.bytes.per.group
  strategy.max.num.groups strategy.partition.regex.pattern strategy.partition.selected
  strategy.single.group.clustering.enabled strategy.small.file.limit strategy.sort.columns
  strategy.target.file.max.bytes
combine: before.delete before.insert before.upsert
commits: archival.batch
common: diskmap.compression.enabled spillable.diskmap.type
compact: inline inline.max.delta.commits inline.max.delta.seconds inline.trigger.strategy merge.handle.class
  schedule.inline
compaction: daybased.target.partitions lazy.block.read logfile.num.threshold logfile.size.threshold
  partition.path.regex payload.class plan.generator record.merger.strategy reverse.log.read strategy target.io
consistency: check.enabled check.initial_interval_ms check.max_checks check.max_interval_ms
copyonwrite: insert.auto.split insert.split.size record.size.estimate
database: name
datasource: clustering.async.enable clustering.inline.enable compaction.async.enable insert.dup.policy merge.type
  meta_sync.condition.sync overwrite.mode partition_extractor_class query.incremental.format query.type
  streaming.startOffset view.type
datasource.hive_sync: assume_date_partitioning auto_create_database base_file_format batch_num bucket_sync
  bucket_sync_spec create_managed_table database enable filter_pushdown_enabled filter_pushdown_max_size
  ignore_exceptions jdbcurl metastore.uris mode omit_metadata_fields partition_extractor_class partition_fields
  password recreate_table_on_error schema_string_length_thresh serde_properties skip_ro_suffix support_timestamp
  sync_as_datasource sync_comment table table.strategy table_properties use_jdbc use_pre_apache_input_format
  use_spark_catalog username
datasource.meta: sync.base.path sync.enable sync.glue sync.glue.metadata_file_listing sync.glue.skip_table_archive
datasource.read: begin.instanttime create.filesystem.relation end.instanttime extract.partition.values.from.path
  file.index.list.partitions.from.catalog file.index.listing.mode
  file.index.listing.partition-path-prefix.analysis.enabled file.index.optimize.listing.using.path.filter
  incr.fallback.fulltablescan.enable incr.filters incr.path.glob incr.skip_cluster incr.skip_compact
  incr.table.version partition.value.extractor.enabled paths schema.use.end.instanttime streaming.table.version
  table.valued.function.filesystem.relation.subpath table.valued.function.timeline.relation
  table.valued.function.timeline.relation.archived
datasource.write: commitmeta.key.prefix drop.partition.columns hive_style_partitioning insert.drop.duplicates
  keygenerator.class keygenerator.consistent.logical.timestamp.enabled keygenerator.type new.columns.nullable
  operation partitionpath.field partitionpath.urlencode partitions.to.delete payload.class precombine.field
  reconcile.schema record.merger.impls record.merger.strategy recordkey.field row.writer.enable
  schema.allow.auto.evolution.column.drop secondarykey.column slash.separated.date.partitioning storage.type
  streaming.checkpoint.identifier streaming.disable.compaction streaming.ignore.failed.batch streaming.retry.count
  streaming.retry.interval.ms table.name table.type
delete: shuffle.parallelism
deltastreamer: . keygen.datetime.parser.class keygen.timebased keygen.timebased.input.dateformat
  keygen.timebased.input.dateformat.list.delimiter.regex keygen.timebased.input.timezone
  keygen.timebased.output.dateformat keygen.timebased.output.timezone keygen.timebased.timestamp.scalar.time.unit
  keygen.timebased.timestamp.type keygen.timebased.timezone schemaprovider schemaprovider.registry.targetUrl
  schemaprovider.registry.url schemaprovider.source.schema.file schemaprovider.target.schema.file
  source.kafka.value.deserializer.class
embed: timeline.server timeline.server.async timeline.server.gzip timeline.server.port timeline.server.reuse.enabled
  timeline.server.threads
enable: data.skipping
errortable: base.path enable insert.shuffle.parallelism source.rdd.persist target.table.name
  upsert.shuffle.parallelism validate.recordcreation.enable validate.targetschema.enable write.class
  write.failure.strategy write.union.enable
expression: index.function index.range.metadata.storage.level index.type
fail: job.on.duplicate.data.file.detection on.timeline.archiving writes.on.inline.table.service.exception
file: group.reader.enabled index.cache.spillable.mem index.cache.use.spillable.map index.enable listing.parallelism
fileIndex: dataSkippingFailureMode
fileid: prefix.provider.class
filesystem: operation.retry.enable operation.retry.exceptions operation.retry.initial_interval_ms
  operation.retry.max_interval_ms operation.retry.max_numbers remote.backup.view.enable view.incr.timeline.sync.enable
  view.remote.host view.remote.port view.remote.retry.enable view.remote.retry.exceptions
  view.remote.retry.initial_interval_ms view.remote.retry.max_interval_ms view.remote.retry.max_numbers
  view.remote.timeout.secs view.rocksdb.base.path view.secondary.type view.spillable.bootstrap.base.file.mem.fraction
  view.spillable.clustering.mem.fraction view.spillable.compaction.mem.fraction view.spillable.dir
  view.spillable.log.compaction.mem.fraction view.spillable.mem view.spillable.replaced.mem.fraction view.type
finalize: write.parallelism
fs: atomic_creation.support
global: index.reconcile.parallelism simple.index.parallelism
hbase: index.update.partition.path
hfile: block.cache.enabled block.cache.size block.cache.ttl.minutes block.size compression.algorithm max.file.size
  writes.allow.duplicates
incremental: use.database
index: bloom.fpp bloom.num_entries bucket.engine class name type
index.hbase: bucket.number desired_puts_time_in_secs dynamic_qps get.batch.size kerberos.user.keytab
  kerberos.user.principal master.kerberos.principal max.qps.fraction max.qps.per.region.server min.qps.fraction
  put.batch.size put.batch.size.autocompute qps.allocator.class qps.fraction regionserver.kerberos.principal
  rollback.sync security.authentication sleep.ms.for.get.batch sleep.ms.for.put.batch table zk.connection_timeout_ms
  zk.session_timeout_ms zknode.path zkpath.qps_root zkport zkquorum
insert: shuffle.parallelism
internal: schema spark.streaming.batch.id sql.merge.into.writes write.schema.canonicalize
io: factory.class
is: update.record.for.mor
keep: max.commits min.commits
keygen: datetime.parser.class timebased timebased.input.dateformat timebased.input.dateformat.list.delimiter.regex
  timebased.input.timezone timebased.output.dateformat timebased.output.timezone timebased.timestamp.scalar.time.unit
  timebased.timestamp.type timebased.timezone
lance: max.file.size read.allocator.size.bytes read.metadata.allocator.size.bytes write.allocator.size.bytes
  write.flush.byte.watermark
layout: optimize optimize.build.curve.sample.size optimize.curve.build.method optimize.data.skipping.enable
  optimize.enable optimize.strategy
log: compaction.blocks.threshold compaction.enable compaction.inline
logfile: data.block.format data.block.max.size max.size to.parquet.compression.ratio
markers: delete.parallelism timeline_server_based.batch.interval_ms timeline_server_based.batch.num_threads
memory: compaction.fraction compaction.max.size dfs.buffer.max.size merge.fraction merge.max.size spillable.map.path
  writestatus.failure.fraction
merge: allow.duplicate.on.inserts data.validation.enabled small.file.group.candidates.limit use.record.positions
meta: sync.client.tool.class sync.decode_partition sync.incremental sync.metadata_file_listing
  sync.no_partition_metadata sync.sync_snapshot_with_table_name sync.touch.partitions.enabled
meta_sync: global.replicate.timestamp spark.version
metadata: . auto.delete.partitions auto.initialize compact.max.delta.commits compact.max.delta.seconds
  compact.trigger.strategy derive.from.datatable.clean.policy dir.filter.regex enable fallback.enable
  file.cache.max.size.mb global.record.level.index.enable global.record.level.index.max.filegroup.count
  global.record.level.index.min.filegroup.count log.compaction.blocks.threshold log.compaction.enable metrics.enable
  optimized.log.blocks.scan.enable partitioned.record.index.max.filegroup.count
  partitioned.record.index.min.filegroup.count range.repartition.random.seed range.repartition.sampling.fraction
  range.repartition.target.records.per.partition repartition.default.partitions repartition.min.partitions.threshold
  spillable.map.path streaming.write.datatable.write.statuses.coalesce.divisor streaming.write.enabled
  table.service.manager.actions table.service.manager.enabled write.concurrency.mode
  write.fail.on.table.service.failures
metadata.bloom: filter.dynamic.max.entries filter.enable filter.fpp filter.num.entries filter.type
metadata.index: async bloom.filter.column.list bloom.filter.enable bloom.filter.file.group.count
  bloom.filter.parallelism check.timeout.seconds column.stats.column.list column.stats.enable
  column.stats.file.group.count column.stats.inMemory.projection.threshold column.stats.max.columns.to.index
  column.stats.parallelism column.stats.processing.mode.override drop expression.column expression.enable
  expression.file.group.count expression.options expression.parallelism partition.stats.enable
  partition.stats.file.group.count partition.stats.parallelism secondary.column secondary.enable secondary.parallelism
metadata.max: deltacommits.when_pending init.parallelism logfile.size reader.buffer.size reader.memory
metadata.record: index.enable index.enable.validation.on.initialization index.growth.factor index.max.filegroup.count
  index.max.filegroup.size index.min.filegroup.count level.index.defer.init level.index.enable
  level.index.max.filegroup.count level.index.min.filegroup.count preparation.parallelism
metaserver: . connect.retries connect.retry.delay enabled uris
metrics: . cloudwatch configs.properties datadog executor.enable graphite jmx jmx.host jmx.port lock.enable m3 on
  prometheus prometheus.port pushgateway reporter.class reporter.metricsname.prefix reporter.type
metrics.cloudwatch: maxDatumsPerRequest metric.prefix namespace report.period.seconds
metrics.datadog: api.key api.key.skip.validation api.key.supplier api.site api.timeout.seconds metric.host
  metric.prefix metric.tags report.period.seconds
metrics.graphite: host metric.prefix port report.period.seconds
metrics.m3: env host port service tags
metrics.pushgateway: delete.on.shutdown host job.name port random.job.name.suffix report.labels report.period.seconds
metricscompaction: log.blocks.on
optimistic: consistency.guard.sleep_time_ms
optimized: log.blocks.scan.enable
orc: block.size compression.codec max.file.size stripe.size
parquet: block.size bloom.filter.enabled compression.codec compression.ratio dictionary.enabled field_id.write.enabled
  flink.rowdata.write.support.class max.file.size outputtimestamptype page.size small.file.limit
  spark.row.write.support.class write.config.injector.class write.utc-timezone.enabled writelegacyformat.enabled
partition: metafile.use.base.format ttl.inline ttl.management.strategy.type ttl.strategy ttl.strategy.class
  ttl.strategy.days.retain ttl.strategy.max.delete.partitions ttl.strategy.partition.selected
payload: delete.field delete.marker event.time.field ordering.field record.schema update.on.same.ordering.field
populate: meta.fields
post: commit.failures.ignored
precommit: validators validators.equality.sql.queries validators.failure.policy validators.inequality.sql.queries
  validators.single.value.sql.queries validators.streaming.offset.tolerance.percentage
prewrite: cleaner.policy validators
query: as.ro.table
read: blob.inline.mode columns.set timeline.holes.resolution.policy
realtime: merge.skip
record: index.input.storage.level index.update.partition.path index.use.caching merge.mode merge.property
  merge.property.hoodie.payload.delete.field merge.property.hoodie.payload.delete.marker
  merge.property.hoodie.write.partial.update.unavailable.value merge.strategy.id size.estimation.threshold
  size.estimator.average.metadata.size size.estimator.class
release: resource.on.completion.enable
rollback: avoid.duplicate.plan instant.backup.dir instant.backup.enabled parallelism using.markers
schema: cache.enable internal.querySchema on.read.enable
sensitive: config.keys
simple: index.input.storage.level index.parallelism index.update.partition.path index.use.caching
skip: default.partition.validation
spark: polaris.catalog.class sql.insert.into.operation sql.optimized.writes.enable
sql: bulk.insert.enable insert.mode
static: overwrite.partition.paths
storage: class layout.partitioner.class layout.type
streamer: . schemaprovider schemaprovider.class schemaprovider.registry.targetUrl schemaprovider.registry.url
  schemaprovider.source.schema.file schemaprovider.target.schema.file source.kafka.value.deserializer.class
support: payload
table: base.file.format cdc.enabled cdc.supplemental.logging.mode checksum create.schema format index.defs.path
  initial.version keygenerator.class keygenerator.type legacy.payload.class log.file.format metadata.partitions
  metadata.partitions.inflight multiple.base.file.formats.enable name ordering.fields partial.update.mode
  partition.fields partition_extractor_class precombine.field recordkey.fields ro.file.format rt.file.format
  secondary.indexes.metadata services.enabled services.incremental.enabled timeline.timezone type version
table.service: manager manager.actions manager.connection.retries manager.connection.retry.delay.sec
  manager.connection.timeout.sec manager.deploy.extra.params manager.deploy.parallelism manager.deploy.queue
  manager.deploy.resources manager.deploy.username manager.enabled manager.execution.engine manager.uris
tablePath: .
time: generator.max_expected_clock_skew_ms generator.type
timeline: compaction.batch.size compaction.target.file.max.bytes history.path layout.version
  manifest.retained.versions path
upsert: shuffle.parallelism
valid: commits.list
vector: columns
write: application.id auto.upgrade buffer.limit.bytes buffer.record.cache.limit buffer.record.sampling.rate
  can.ignore.post.commit.failures complex.keygen.new.encoding complex.keygen.validation.enable concat.handle.class
  concurrency empty.clean.interval.hours executor.disruptor.buffer.limit.bytes executor.disruptor.wait.strategy
  executor.type ignore.failed lock markers.type merge.handle.class merge.handle.fallback
  num.retries.on.conflict.failures partial.update.schema partial.update.unavailable.value rolling.metadata.keys
  rolling.metadata.timeline.lookback.commits schema set.null.for.missing.columns status.storage.level table.version
  tagged.record.storage.level track.event.time.watermark
write.commit: callback callback.class callback.http.api.key callback.http.custom.headers callback.http.timeout.seconds
  callback.http.url callback.on
write.concurrency: async.conflict.detector.initial_delay_ms async.conflict.detector.period_ms
  early.conflict.check.commit.conflict early.conflict.detection.enable early.conflict.detection.strategy mode
  schema.conflict.resolution.enable
write.lock: app_id client.num_retries client.wait_time_ms_between_retry conflict.resolution.strategy dynamodb
  dynamodb.billing_mode dynamodb.endpoint_url dynamodb.partition_key dynamodb.read_capacity dynamodb.region
  dynamodb.table dynamodb.table_creation_timeout dynamodb.write_capacity filesystem filesystem.expire filesystem.path
  heartbeat_interval_ms hivemetastore hivemetastore.database hivemetastore.table hivemetastore.uris
  max_wait_time_ms_between_retry num_retries provider storage storage.heartbeat.poll.secs storage.renew.interval.secs
  storage.validity.timeout.secs wait_time_ms wait_time_ms_between_retry zookeeper zookeeper.base_path
  zookeeper.connection_timeout_ms zookeeper.lock_key zookeeper.port zookeeper.session_timeout_ms zookeeper.url
write.record: merge.custom.implementation.classes merge.mode merge.strategy.id positions
writestatus: class
"""


@lru_cache(maxsize=1)
def list_hudi_names() -> frozenset[str]:
    """Return the names."""
    found: set[str] = set()
    begin = ""
    for word in _NAMES.split():
        if word.endswith(":"):
            begin = f"hoodie.{word[:-1]}"
        else:
            found.add(begin if word == "." else f"{begin}.{word}")
    return frozenset(found)
