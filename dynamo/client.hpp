#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/random.hpp"
#include "dynamo/attribute_value.hpp"
#include "dynamo/credentials/credentials.hpp"
#include "dynamo/endpoints/endpoint_rules.hpp"
#include "dynamo/error.hpp"
#include "dynamo/item_write.hpp"
#include "dynamo/server_time.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

/// Capacity units that one answer reported.
struct Capacity {
  double read = 0;
  double write = 0;

  Capacity& operator+=(const Capacity& other) {
    read += other.read;
    write += other.write;
    return *this;
  }
};

/// What one HTTP attempt came to; given to ClientOptions::observer.
struct CallRecord {
  std::string operation;  ///< "Query", "BatchExecuteStatement", ...
  std::string table;      ///< empty where the request names none or several
  Capacity capacity;
  std::optional<ErrorKind> error;
};

/// The region must not be empty.
struct ClientOptions : EndpointSettings {
  int max_attempts = 4;
  Duration attempt_timeout = std::chrono::seconds(10);  ///< of one HTTP attempt
  /// Called after each HTTP attempt, on the thread that makes the call, by several threads at once; must be quick. May
  /// be empty.
  std::function<void(const CallRecord&)> observer{};
};

inline constexpr std::size_t kMaxBatchStatements = 25;
inline constexpr std::size_t kMaxBatchKeys = 100;

struct GetItemRequest {
  std::string table;
  Item key;
  bool consistent = true;
};

/// What Query and Scan have in common.
struct PageRequest {
  std::string table;
  std::string index{};
  std::string filter{};
  std::string projection{};
  std::map<std::string, std::string> names{};
  Item values{};
  std::optional<std::int64_t> limit{};
  bool consistent = false;
  Item exclusive_start_key{};
};
struct ScanRequest : PageRequest {};
struct QueryRequest : PageRequest {
  std::string key_condition{};
  bool forward = true;
};

/// A page of a Query or Scan.
struct Page {
  std::vector<Item> items;
  Item last_evaluated_key;  ///< empty: the end
  Capacity capacity;
};

struct ItemOutput {
  Item item;  ///< of a read, empty when absent; of a write that is `returning`
  Capacity capacity;
};

/// One PartiQL statement that writes.
struct Statement {
  std::string text;
  std::vector<AttributeValue> parameters;
};

/// The fate of one statement of a batch.
struct StatementResult {
  std::optional<Error> error;  ///< kind conditional_check_failed, throttled, ...; `exception_name` is AWS's code
  Item item;                   ///< what RETURNING gave
};

struct BatchStatementOutput {
  std::vector<StatementResult> results;  ///< in the order of the statements
  Capacity capacity;
};

struct IndexDescription {
  std::string name;
  std::string hash_key;
  std::string range_key;
  std::string projection;  ///< "ALL", "KEYS_ONLY", "INCLUDE"
  std::string status;
  bool backfilling = false;  ///< it is being made over items that were there before
  // As of up to six hours ago, which is how often DynamoDB counts.
  std::int64_t item_count = 0;
  std::int64_t size_bytes = 0;
};

struct TableDescription {
  std::string name;
  std::string status;  ///< "ACTIVE", "CREATING", ...
  std::string arn;
  std::string hash_key;
  std::string range_key;
  std::string billing_mode;
  std::string table_class;       ///< "STANDARD" or "STANDARD_INFREQUENT_ACCESS"; empty: not told, which is STANDARD
  std::string stream_view_type;  ///< empty: no stream
  // Of a table with provisioned capacity.
  std::int64_t read_units = 0;
  std::int64_t write_units = 0;
  // As of up to six hours ago, which is how often DynamoDB counts.
  std::int64_t item_count = 0;
  std::int64_t size_bytes = 0;
  bool deletion_protection = false;
  std::map<std::string, std::string> attribute_types;
  std::vector<IndexDescription> indexes;
};

struct CreateTableRequest {
  std::string name;
  std::map<std::string, std::string> attribute_types;  ///< name -> "S", "N", "B"
  std::string hash_key;
  std::string range_key;
  std::vector<IndexDescription> indexes;  ///< status is ignored
  bool deletion_protection = false;
};

/// Whether DynamoDB removes items whose time has passed, and by which attribute. A value.
struct TimeToLive {
  std::string status;     ///< "ENABLED", "DISABLED", "ENABLING", "DISABLING"
  std::string attribute;  ///< empty: none is named

  /// It is, or is about to be.
  bool on() const { return status == "ENABLED" || status == "ENABLING"; }
};

/// A DynamoDB client. Knows no queue.
///
/// Thread-safe. Each call blocks until it has an answer, its retries are used up, or the deadline has passed. Retries
/// follow AWS's standard mode, with one exception that protects writes: a write whose outcome is unknown is not
/// repeated but returned with `Error::outcome_unknown`, so that the caller, who knows what a second try would do,
/// decides.
class Client : boost::noncopyable {
 public:
  /// The references must outlive the client.
  Client(ClientOptions options, HttpTransport& transport, CredentialsProvider& credentials, const Clock& clock,
         Random& random);
  ~Client();

  Result<ItemOutput> get_item(const GetItemRequest& request, Deadline deadline);
  /// PutItem, UpdateItem or DeleteItem.
  Result<ItemOutput> write(const ItemWrite& write, Deadline deadline);
  /// Each write is a request of its own; they run side by side, as many at once as the transport allows. Results in the
  /// order of the writes.
  std::vector<Result<ItemOutput>> write_each(std::span<const ItemWrite> writes, Deadline deadline);
  /// One with a token is repeated though its outcome is unknown; `Error::outcome_unknown` says that it still is after
  /// all tries, and the caller may make the same request again within ten minutes.
  Result<ItemOutput> transact(const TransactWriteRequest& request, Deadline deadline);
  /// Several, side by side. Results in the order of the requests.
  std::vector<Result<ItemOutput>> transact_each(std::span<const TransactWriteRequest> requests, Deadline deadline);
  Result<Page> query(const QueryRequest& request, Deadline deadline);
  /// Several at once, side by side. Results in the order of the requests.
  std::vector<Result<Page>> query_each(std::span<const QueryRequest> requests, Deadline deadline);
  Result<Page> scan(const ScanRequest& request, Deadline deadline);

  /// At most kMaxBatchStatements a batch; several batches run side by side. Results in the order of the batches. The
  /// answer is HTTP 200 even when every statement failed: look at each result. Never repeated by the client when the
  /// outcome is unknown.
  std::vector<Result<BatchStatementOutput>> batch_execute(std::span<const std::vector<Statement>> batches,
                                                          Deadline deadline);
  /// At most kMaxBatchKeys of one table; consistent. Absent ones are missing from the answer.
  Result<std::vector<Item>> batch_get(const std::string& table, std::span<const Item> keys, Deadline deadline);

  Result<TableDescription> create_table(const CreateTableRequest& request, Deadline deadline);
  Result<TableDescription> describe_table(const std::string& table, Deadline deadline);
  Result<TimeToLive> describe_time_to_live(const std::string& table, Deadline deadline);
  /// Switches it on by this attribute. DynamoDB refuses it (ErrorKind::validation) where it is on already.
  Result<void> enable_time_to_live(const std::string& table, const std::string& attribute, Deadline deadline);

  /// The URL that requests go to, for messages. An Error when region and options allow none.
  Result<std::string> endpoint(Deadline deadline);

  /// How this machine's wall clock stands to DynamoDB's, as far as the answers so far tell; nothing while there was
  /// none.
  std::optional<ClockReading> clock_reading() const;

  /// Ends waits and refuses new calls (ErrorKind::cancelled). Idempotent.
  void stop();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace sluice::dynamo
