#pragma once

#include <boost/core/noncopyable.hpp>
#include <set>

#include "base/mutex.hpp"
#include "dynamo/attribute_value.hpp"
#include "dynamo/client.hpp"
#include "host/stores/outbox/database.hpp"

/// Rows of an outbox as items of a DynamoDB table.
///
/// The table's partition key is `bucket` (S), its sort key the row's id (N). Whoever writes a row names its bucket,
/// "0", "1", ...: the same one for all rows of one aggregate. A row that has been sent is deleted; a dead letter lies
/// in its bucket's partition for such.
namespace sluice::queue::outbox {

inline constexpr std::string_view kBucket = "bucket";

std::string partition_of(std::uint32_t bucket);       // "3"
std::string dead_partition_of(std::uint32_t bucket);  // "dead#3"
/// The bucket of either; nothing for another text ("03" is none).
std::optional<std::uint32_t> bucket_in(std::string_view partition);

/// Both attributes of an item's key.
dynamo::Item key_of(const config::OutboxColumns& columns, const std::string& partition, std::int64_t id);

/// Whether the filter wants rows of that type and event.
bool wants(const Selection& filter, const std::string& type, const std::string& event);

/// Where rows lie beside the buckets of the configured number.
struct FurtherBuckets {
  std::vector<std::uint32_t> higher;  ///< sorted; each is had by whoever has the bucket that it is modulo the number
  std::set<std::string> unknown;      ///< no names of buckets: nobody publishes from there
  bool more = false;                  ///< there are so many that the look was ended
};

/// One outbox table and what its sessions share. Thread-safe; outlives them.
class OutboxPlace : boost::noncopyable {
 public:
  /// The references must outlive it.
  OutboxPlace(Settings settings, dynamo::Client& client, const Clock& clock)
      : settings_(std::move(settings)), client_(client), clock_(clock) {}
  ~OutboxPlace() = default;

  const Settings& settings() const { return settings_; }
  const config::OutboxConfig& table() const { return settings_.config; }
  const config::OutboxColumns& columns() const { return settings_.config.columns; }
  dynamo::Client& client() const { return client_; }
  const Clock& clock() const { return clock_; }

  /// The row's id; nothing where it is no whole number of 64 bits, and so no row that anybody could name.
  std::optional<std::int64_t> id_of(const dynamo::Item& item) const;
  /// As of `now` on DynamoDB's clock. For an item that has an id.
  Row row_of(const dynamo::Item& item, WallTime now) const;
  StoredRow stored_row_of(const dynamo::Item& item, WallTime now) const;

  /// DynamoDB's time, as far as its answers have told it.
  WallTime now() const;
  /// Asks for it where none has told it since this machine's clock was set: before a time is written.
  void be_sure_of_time(Deadline deadline);

  /// Consistent reads of rows, pending or dead. Absent ones are missing from the answer.
  Result<std::map<RowKey, dynamo::Item>> find(std::span<const RowKey> rows, Deadline deadline);

  /// A consistent query of a partition, behind an id where one is given.
  dynamo::QueryRequest query_of(const std::string& partition, std::optional<std::int64_t> after = {}) const;
  /// Shows all items of a partition that have an id.
  Result<void> each(const std::string& partition, const std::function<void(std::int64_t id, dynamo::Item&&)>& visit,
                    Deadline deadline);

  /// What makes of a row what the edit says, where it stays in its partition; on the condition that it is still there
  /// with as many tries as `only_if` says.
  dynamo::ItemWrite write_of(const std::string& partition, std::int64_t id, const RowEdit& edit) const;
  /// Edits a row, as it was just read, that goes from among the pending ones to the dead letters, or back. The two lie
  /// in different partitions, so that what is given up is never read again by those who look for work: it is one
  /// transaction of two writes. Nothing: it has gone there.
  std::optional<dynamo::Error> move(const dynamo::Item& row, const RowEdit& edit, Deadline deadline);

  /// Looks for them: a request for each bucket that holds something, whatever it holds.
  Result<FurtherBuckets> look_for_buckets(Deadline deadline);
  /// The higher ones by a look that is not older than an hour. Where none can be had: as of the last one.
  std::vector<std::uint32_t> higher_buckets(Deadline deadline);

  /// The table's ARN: its region, account and name.
  Result<SourceId> source_id(Deadline deadline);

  /// What the client says, in words about this table.
  Error error_of(const dynamo::Error& error) const;
  /// Its answer, or its error in such words.
  template <typename T>
  Result<T> told(dynamo::Result<T> answer) const {
    return answer ? Result<T>(std::move(*answer)) : Result<T>(error_of(answer.error()));
  }

 private:
  const Settings settings_;
  dynamo::Client& client_;
  const Clock& clock_;

  Mutex mutex_;
  std::vector<std::uint32_t> higher_ SLUICE_GUARDED_BY(mutex_);
  std::optional<SteadyTime> look_again_ SLUICE_GUARDED_BY(mutex_);
};

/// An outbox in a DynamoDB table of the application's; docs/run/outbox.md says why its rows lie as they do. No request
/// is made before a session is asked for something. The references must outlive it.
std::unique_ptr<Database> make_dynamodb_outbox(Settings settings, dynamo::Client& client, const Clock& clock,
                                               Random& random);

/// Reads pending rows: one consistent query for each bucket, so that a row is seen in its order from the moment it was
/// committed. There are no notifications. `place` outlives it.
std::unique_ptr<ReadSession> make_dynamodb_reader(OutboxPlace& place);

}  // namespace sluice::queue::outbox
