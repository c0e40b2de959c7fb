// What of the Hive Metastore's Thrift interface this package calls. The numbers are those of the interface, which has
// more structs, fields and methods: unknown fields are skipped when they are read. Metastores 2.3 to 4 have all of it.

struct FieldSchema { 1: string name, 2: string type, 3: string comment }
struct SerDeInfo { 1: string name, 2: string serializationLib, 3: map<string, string> parameters }
struct Order { 1: string col, 2: i32 order }
struct StorageDescriptor {
  1: list<FieldSchema> cols, 2: string location, 3: string inputFormat, 4: string outputFormat, 5: bool compressed,
  6: i32 numBuckets, 7: SerDeInfo serdeInfo, 8: list<string> bucketCols, 9: list<Order> sortCols,
  10: map<string, string> parameters, 12: optional bool storedAsSubDirectories
}
struct Table {
  1: string tableName, 2: string dbName, 3: string owner, 4: i32 createTime, 5: i32 lastAccessTime, 6: i32 retention,
  7: StorageDescriptor sd, 8: list<FieldSchema> partitionKeys, 9: map<string, string> parameters,
  10: string viewOriginalText, 11: string viewExpandedText, 12: string tableType
}
struct Partition {
  1: list<string> values, 2: string dbName, 3: string tableName, 4: i32 createTime, 5: i32 lastAccessTime,
  6: StorageDescriptor sd, 7: map<string, string> parameters
}
struct Database { 1: string name, 2: string description, 3: string locationUri, 4: map<string, string> parameters }
struct EnvironmentContext { 1: map<string, string> properties }
struct GetTableRequest { 1: required string dbName, 2: required string tblName }
struct GetTableResult { 1: required Table table }
struct GetTablesRequest { 1: required string dbName, 2: optional list<string> tblNames }
struct GetTablesResult { 1: required list<Table> tables }
struct AddPartitionsRequest {
  1: required string dbName, 2: required string tblName, 3: required list<Partition> parts, 4: required bool ifNotExists,
  5: optional bool needResult
}
struct AddPartitionsResult { 1: optional list<Partition> partitions }

exception MetaException { 1: string message }
exception AlreadyExistsException { 1: string message }
exception InvalidObjectException { 1: string message }
exception InvalidOperationException { 1: string message }
exception NoSuchObjectException { 1: string message }
exception UnknownDBException { 1: string message }

service ThriftHiveMetastore {
  list<string> get_all_databases() throws (1: MetaException o1)
  Database get_database(1: string name) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void create_database(1: Database database)
    throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  list<string> get_all_tables(1: string db_name) throws (1: MetaException o1)
  GetTableResult get_table_req(1: GetTableRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  GetTablesResult get_table_objects_by_name_req(1: GetTablesRequest req)
    throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3)
  void create_table(1: Table tbl) throws (
    1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: NoSuchObjectException o4)
  void alter_table_with_environment_context(
    1: string dbname, 2: string tbl_name, 3: Table new_tbl, 4: EnvironmentContext environment_context)
    throws (1: InvalidOperationException o1, 2: MetaException o2)
  list<Partition> get_partitions(1: string db_name, 2: string tbl_name, 3: i16 max_parts)
    throws (1: NoSuchObjectException o1, 2: MetaException o2)
  Partition get_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals)
    throws (1: MetaException o1, 2: NoSuchObjectException o2)
  AddPartitionsResult add_partitions_req(1: AddPartitionsRequest request)
    throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  void alter_partitions(1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts)
    throws (1: InvalidOperationException o1, 2: MetaException o2)
  bool drop_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: bool deleteData)
    throws (1: NoSuchObjectException o1, 2: MetaException o2)
}
