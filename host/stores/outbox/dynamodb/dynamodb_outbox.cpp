#include <numeric>
#include <utility>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"
#include "host/stores/outbox/lease_locks.hpp"

namespace sluice::queue::outbox {
namespace {

using dynamo::AttributeValue;

constexpr std::size_t kMostNamed = 300;  // bytes of names in a finding, about

constexpr std::string_view kCounter = "counter";
constexpr std::string_view kLease = "lease_ms";
constexpr std::string_view kBuckets = "buckets";
constexpr std::string_view kOwner = "owner";
constexpr std::string_view kEpoch = "epoch";

std::int64_t number_of(const dynamo::Item& item, std::string_view name) {
  return dynamo::whole_number(item, name).value_or(0);
}

std::string in_quotes(std::string_view name) { return "\"" + std::string(name) + "\""; }

/// A row of it is in a transaction of somebody else's at this moment.
bool is_held_by_another(const dynamo::Error& error) {
  return error.kind == dynamo::ErrorKind::server && error.exception_name.starts_with("Transaction");
}

/// Writes what became of rows. A row that was sent is deleted, 25 of them a request; one that failed is updated by a
/// request of its own; one that is given up moves to the dead letters. Made for one call.
class Marks {
 public:
  explicit Marks(OutboxPlace& place, std::span<const RowEdit> marks)
      : place_(place), marks_(marks), statuses_(marks.size(), MarkStatus::gone) {}

  /// As LockSession::mark.
  Result<std::vector<MarkStatus>> write(Deadline deadline) {
    Places sent;
    Places singly;
    Places dead;
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      if (marks_[i].key.part != RowKey::kWhole) {  // a row has a bucket
        (marks_[i].gives_up ? dead : marks_[i].sent && !marks_[i].only_if ? sent : singly).push_back(i);
      }
    }
    // What may be refused comes first, and may be written twice: a row that was sent is gone then.
    auto refusable = write_each(singly, deadline);
    refusable = refusable ? write_dead(dead, deadline) : refusable;
    if (!refusable && !ends_session(refusable.error().code())) {
      return refusable.error();
    }
    // Also where the session ends by it, for what was sent is not to be sent again.
    SLUICE_PASS_ON(write_sent(sent, deadline));
    SLUICE_PASS_ON(refusable);
    return std::move(statuses_);
  }

 private:
  /// Marks of one kind, by their places among all of them.
  using Places = std::vector<std::size_t>;

  Result<void> write_sent(const Places& places, Deadline deadline) {
    const std::string text = "DELETE FROM " + in_quotes(place_.table().table) + " WHERE " + in_quotes(kBucket) +
                             " = ? AND " + in_quotes(place_.columns().id) + " = ? RETURNING ALL OLD *";
    std::vector<std::vector<dynamo::Statement>> batches;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i % dynamo::kMaxBatchStatements == 0) {
        batches.emplace_back();
      }
      const RowEdit& mark = marks_[places[i]];
      batches.back().push_back({text, {partition_of(mark.key.part), AttributeValue::number(mark.key.id)}});
    }
    const auto outputs = place_.client().batch_execute(batches, deadline);
    std::optional<Error> failure;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto& output = outputs[i / dynamo::kMaxBatchStatements];
      if (!output) {
        // A row that was deleted by a request whose answer was lost is found to be gone when the mark is repeated.
        failure = failure ? failure : place_.error_of(output.error());
        continue;
      }
      const dynamo::StatementResult& result = output->results[i % dynamo::kMaxBatchStatements];
      const auto noted = note(places[i], result.error, result.item.empty() ? MarkStatus::gone : MarkStatus::written);
      failure = failure || noted ? failure : noted.error();
    }
    if (failure) {
      const bool nothing_written =
          std::none_of(outputs.begin(), outputs.end(), [](const auto& output) { return output.has_value(); });
      return Error(nothing_written ? failure->code() : ErrorCode::unknown_outcome, failure->message());
    }
    return {};
  }

  Result<void> write_each(const Places& places, Deadline deadline) {
    if (places.empty()) {
      return {};
    }
    place_.be_sure_of_time(deadline);
    const auto writes = mapped(places, [this](std::size_t i) {
      return place_.write_of(partition_of(marks_[i].key.part), marks_[i].key.id, marks_[i]);
    });
    const auto results = place_.client().write_each(writes, deadline);
    for (std::size_t k = 0; k < places.size(); ++k) {
      SLUICE_PASS_ON(
          note(places[k], results[k] ? std::nullopt : std::optional(results[k].error()), MarkStatus::written));
    }
    return {};
  }

  Result<void> write_dead(const Places& places, Deadline deadline) {
    for (const std::size_t i : places) {
      const RowEdit& mark = marks_[i];
      SLUICE_TRY(row, row_in(partition_of(mark.key.part), mark.key.id, deadline));
      if (row->empty() && !mark.only_if) {
        // A mark that was refused beside it may have it written anew.
        SLUICE_TRY(moved, row_in(dead_partition_of(mark.key.part), mark.key.id, deadline));
        statuses_[i] = moved->empty() ? MarkStatus::gone : MarkStatus::written;
      } else if (!row->empty() && takes_effect(mark, place_.row_of(*row, {}).retries, false)) {
        SLUICE_PASS_ON(note(i, place_.move(*row, mark, deadline), MarkStatus::written));
      }
    }
    return {};
  }

  Result<dynamo::Item> row_in(const std::string& partition, std::int64_t id, Deadline deadline) {
    SLUICE_TRY(read,
               place_.told(place_.client().get_item(
                   {.table = place_.table().table, .key = key_of(place_.columns(), partition, id), .consistent = true},
                   deadline)));
    return std::move(read->item);
  }

  // An error of one row alone is somebody else's doing, or worth another try. Everything else is a failure of the
  // whole.
  Result<void> note(std::size_t place, const std::optional<dynamo::Error>& error, MarkStatus otherwise) {
    if (!error) {
      statuses_[place] = otherwise;
    } else if (error->kind == dynamo::ErrorKind::conditional_check_failed) {
      statuses_[place] = MarkStatus::gone;
    } else if (error->kind == dynamo::ErrorKind::throttled) {
      statuses_[place] = MarkStatus::throttled;
    } else if (is_held_by_another(*error)) {
      statuses_[place] = MarkStatus::locked;
    } else {
      return place_.error_of(*error);
    }
    return {};
  }

  OutboxPlace& place_;
  const std::span<const RowEdit> marks_;
  std::vector<MarkStatus> statuses_;
};

/// Leases as items beside the rows: one for each bucket of a space, written only when it changes hands, and one
/// heartbeat for each member. Marks are not heartbeats, and are not refused to whoever has lost his lease without
/// knowing it: he measures it himself.
class DynamoDbLeaseBook final : public LeaseBook {
 public:
  /// `place` must outlive it.
  explicit DynamoDbLeaseBook(OutboxPlace& place) : place_(place) {}

  void open(const LockSpace& space) override { space_ = space.name; }

  Result<void> announce(const LeaseMember& member, Deadline deadline) override {
    dynamo::ItemWrite request;
    request.table = place_.table().table;
    request.item = key_of(place_.columns(), members_partition(), member.name);
    request.item.emplace(kCounter, AttributeValue::number(member.counter));
    request.item.emplace(
        kLease, AttributeValue::number(std::chrono::duration_cast<std::chrono::milliseconds>(member.lease).count()));
    request.item.emplace(kBuckets, AttributeValue::number(member.buckets));
    SLUICE_PASS_ON(place_.told(place_.client().write(request, deadline)));
    return {};
  }

  Result<std::vector<LeaseMember>> members(Deadline deadline) override {
    std::vector<LeaseMember> members;
    const auto visit = [&](std::int64_t name, const dynamo::Item& item) {
      members.push_back({.name = name,
                         .counter = number_of(item, kCounter),
                         .lease = lease_of(number_of(item, kLease)),
                         .buckets = static_cast<std::uint32_t>(number_of(item, kBuckets))});
    };
    SLUICE_PASS_ON(place_.each(members_partition(), visit, deadline));
    return members;
  }

  // No harm is done when a removal was wrong, either: who lives writes the whole item again.
  void bury(std::span<const LeaseMember> members, Deadline deadline) override {
    const auto removal_of = [this](const LeaseMember& member) {
      dynamo::ItemWrite removal{.kind = dynamo::ItemWrite::Kind::remove};
      removal.table = place_.table().table;
      removal.item = key_of(place_.columns(), members_partition(), member.name);
      removal.condition = "#c <= :c";
      removal.names.emplace("#c", kCounter);
      removal.values.emplace(":c", AttributeValue::number(member.counter));
      return removal;
    };
    (void)place_.client().write_each(mapped(members, removal_of), deadline);
  }

  Result<BucketLeases> buckets(Deadline deadline) override {
    BucketLeases leases;
    const auto visit = [&](std::int64_t bucket, const dynamo::Item& item) {
      leases[static_cast<std::uint32_t>(bucket)] = {number_of(item, kOwner), number_of(item, kEpoch)};
    };
    SLUICE_PASS_ON(place_.each(locks_partition(), visit, deadline));
    return leases;
  }

  Result<std::vector<std::uint32_t>> change_hands(const BucketLeases& before, std::int64_t owner,
                                                  Deadline deadline) override {
    const auto put_of = [&](const auto& lease) { return this->put_of(lease.first, lease.second.epoch, owner); };
    const auto results = place_.client().write_each(mapped(before, put_of), deadline);
    std::vector<std::uint32_t> changed;
    auto result = results.begin();
    for (const auto& [bucket, lease] : before) {
      if (*result) {
        changed.push_back(bucket);
      } else if (result->error().kind != dynamo::ErrorKind::conditional_check_failed) {
        return place_.error_of(result->error());
      }
      ++result;
    }
    return changed;
  }

  Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, const LeaseMember* /*member*/,
                                       Deadline deadline) override {
    return Marks(place_, marks).write(deadline);
  }

  bool marks_are_heartbeats() const override { return false; }

 private:
  dynamo::ItemWrite put_of(std::uint32_t bucket, std::int64_t epoch, std::int64_t owner) const {
    dynamo::ItemWrite request;
    request.table = place_.table().table;
    request.item = key_of(place_.columns(), locks_partition(), bucket);
    request.item.emplace(kOwner, AttributeValue::number(owner));
    request.item.emplace(kEpoch, AttributeValue::number(epoch + 1));
    if (epoch == 0) {
      request.condition = "attribute_not_exists(#e)";
    } else {
      request.condition = "#e = :e";
      request.values.emplace(":e", AttributeValue::number(epoch));
    }
    request.names.emplace("#e", kEpoch);
    return request;
  }

  std::string members_partition() const { return "member/" + space_; }
  std::string locks_partition() const { return "lock/" + space_; }

  OutboxPlace& place_;
  std::string space_;
};

Error not_there(const OutboxPlace& place, const RowKey& key) {
  return {ErrorCode::not_found, "outbox '" + place.settings().name + "' has no pending or dead row " + to_string(key) +
                                    "; rows are named by bucket and id, and one that was sent is deleted"};
}

/// What operators see of the table and do to its rows. Counting reads all that is pending or dead.
class DynamoDbAdmin final : public AdminSession {
 public:
  /// `place` must outlive it.
  explicit DynamoDbAdmin(OutboxPlace& place) : place_(place) {}

  Result<std::vector<Finding>> inspect(Deadline deadline) override {
    const auto table = place_.client().describe_table(place_.table().table, deadline);
    if (!table && table.error().kind != dynamo::ErrorKind::resource_not_found) {
      return place_.error_of(table.error());
    }
    std::vector<Finding> findings;
    const auto fatal = [&](ErrorCode code, const std::string& text) { findings.push_back({true, code, text}); };
    if (!table) {
      const Error missing = place_.error_of(table.error());
      fatal(missing.code(), missing.message());
      return findings;
    }
    const std::string mend = "; `sluice outbox ddl " + place_.settings().name + "` shows the table that is needed";
    const auto type_of = [&table](const std::string& name) {
      const auto found = table->attribute_types.find(name);
      return found == table->attribute_types.end() ? std::string() : found->second;
    };
    const std::string where = "table '" + place_.table().table + "': ";
    if (table->hash_key != kBucket || type_of(table->hash_key) != "S") {
      fatal(ErrorCode::invalid, where + "its partition key is " + table->hash_key + " (" + type_of(table->hash_key) +
                                    ") and must be bucket (S)" + mend);
    }
    if (table->range_key != place_.columns().id || type_of(table->range_key) != "N") {
      fatal(ErrorCode::invalid, where + "its sort key is '" + table->range_key + "' (" + type_of(table->range_key) +
                                    ") and must be " + place_.columns().id + " (N)" + mend);
    }
    if (table->status != "ACTIVE") {
      fatal(ErrorCode::unavailable, where + "it is " + table->status + "; wait until it is ACTIVE");
    }
    if (findings.empty()) {
      look_for_buckets(findings, where, deadline);
    }
    return findings;
  }

  Result<SourceId> source_id(Deadline deadline) override { return place_.source_id(deadline); }

  Result<StoredRow> get(const RowKey& key, Deadline deadline) override {
    SLUICE_TRY(found, place_.find(std::span(&key, 1), deadline));
    if (found->empty()) {
      return not_there(place_, key);
    }
    return place_.stored_row_of(found->begin()->second, place_.now());
  }

  // DynamoDB ends a page at 1 MiB, so that a bucket is read on for as long as it may have rows before those of the
  // others.
  Result<std::vector<StoredRow>> list(const ListRows& request, Deadline deadline) override {
    std::vector<StoredRow> rows;
    const auto place_of = [&request](std::int64_t id) { return request.newest_first ? ~id : id; };
    std::multimap<std::int64_t, dynamo::QueryRequest> unread;  // of buckets, by how far they have been read
    for (const std::uint32_t bucket : all_buckets(deadline)) {
      unread.emplace(std::numeric_limits<std::int64_t>::min(), list_query(request, bucket));
    }
    const auto enough = [&] {
      const auto known = std::count_if(rows.begin(), rows.end(), [&](const StoredRow& stored) {
        return place_of(stored.row.id) <= unread.begin()->first;
      });
      return static_cast<std::size_t>(known) >= request.limit;
    };
    const WallTime now = place_.now();
    while (!unread.empty() && !enough()) {
      auto next = unread.extract(unread.begin());
      SLUICE_TRY(page, place_.told(place_.client().query(next.mapped(), deadline)));
      for (const dynamo::Item& item : page->items) {
        if (place_.id_of(item)) {
          rows.push_back(place_.stored_row_of(item, now));
        }
      }
      if (!page->last_evaluated_key.empty()) {
        const auto last = place_.id_of(page->last_evaluated_key);
        next.key() = last ? place_of(*last) : next.key();
        next.mapped().exclusive_start_key = std::move(page->last_evaluated_key);
        unread.insert(std::move(next));
      }
    }
    std::sort(rows.begin(), rows.end(), [&request](const StoredRow& one, const StoredRow& other) {
      return request.newest_first ? other.row.key() < one.row.key() : one.row.key() < other.row.key();
    });
    rows.resize(std::min(rows.size(), request.limit));
    return rows;
  }

  Result<TableCounts> count(const CountRequest& request, Deadline deadline) override {
    TableCounts counts;
    const WallTime now = place_.now();
    std::optional<WallTime> oldest;
    const auto visit = [&](std::int64_t /*id*/, const dynamo::Item& item) {
      const StoredRow stored = place_.stored_row_of(item, now);
      const Row& row = stored.row;
      if (request.details && !stored.last_error.empty()) {
        ++counts.by_error[stored.last_error];
      }
      if (row.dead) {
        ++counts.dead;
        return;
      }
      if (!request.jobs.empty() && std::none_of(request.jobs.begin(), request.jobs.end(), [&row](const auto& job) {
            return wants(job, row.group.type, row.event);
          })) {
        ++counts.excluded;
        return;
      }
      ++(row.wait ? counts.waiting : counts.ready);
      if (request.details) {
        ++counts.by_type[row.group.type];
      }
      counts.oldest_id = std::min(counts.oldest_id.value_or(row.id), row.id);
      if (row.created_at) {
        oldest = std::min(oldest.value_or(*row.created_at), *row.created_at);
      }
    };
    for (const std::uint32_t bucket : all_buckets(deadline)) {
      for (const std::string& partition : {partition_of(bucket), dead_partition_of(bucket)}) {
        SLUICE_PASS_ON(place_.each(partition, visit, deadline));
      }
    }
    if (oldest) {
      counts.oldest = std::max(Duration::zero(), Duration(now - *oldest));
    }
    if (request.sent) {
      counts.sent = 0;
    }
    return counts;
  }

  Result<std::vector<ChangeStatus>> change(std::span<const RowEdit> edits, Deadline deadline) override {
    SLUICE_TRY(found, place_.find(mapped(edits, &RowEdit::key), deadline));
    std::vector<ChangeStatus> results;
    results.reserve(edits.size());
    for (const RowEdit& edit : edits) {
      const auto item = found->find(edit.key);
      if (item == found->end()) {
        results.push_back(ChangeStatus::not_found);
        continue;
      }
      SLUICE_TRY(result, change_one(edit, item->second, deadline));
      results.push_back(*result);
    }
    return results;
  }

  /// Rows that were sent are not there any more: none.
  Result<std::uint64_t> prune(const PruneRequest& /*request*/, Deadline /*deadline*/) override {
    return std::uint64_t{0};
  }

 private:
  Result<ChangeStatus> change_one(RowEdit edit, const dynamo::Item& item, Deadline deadline) {
    const Row row = place_.row_of(item, place_.now());
    if (!takes_effect(edit, row.retries, row.dead)) {
      return ChangeStatus::conflict;
    }
    if (edit.gives_up && row.dead) {
      return ChangeStatus::applied;
    }
    std::optional<dynamo::Error> refusal;
    if (edit.gives_up || (row.dead && edit.tries == RowEdit::Value::clear)) {
      refusal = place_.move(item, edit, deadline);
    } else {
      edit.only_if = row.retries;
      const std::string partition = row.dead ? dead_partition_of(row.part) : partition_of(row.part);
      const auto written = place_.client().write(place_.write_of(partition, row.id, edit), deadline);
      refusal = written ? refusal : written.error();
    }
    if (!refusal) {
      return ChangeStatus::applied;
    }
    const bool others = refusal->kind == dynamo::ErrorKind::conditional_check_failed || is_held_by_another(*refusal);
    return others ? Result<ChangeStatus>(ChangeStatus::conflict) : place_.error_of(*refusal);
  }

  /// Of the rows of a bucket that a listing may show.
  dynamo::QueryRequest list_query(const ListRows& request, std::uint32_t bucket) const {
    dynamo::QueryRequest query =
        place_.query_of(request.half == Half::dlq ? dead_partition_of(bucket) : partition_of(bucket));
    if (request.beyond) {
      // Of rows with that very id those are beyond it that lie in later buckets, or in earlier ones.
      const bool same_too = request.newest_first ? bucket < request.beyond->part : bucket > request.beyond->part;
      query.key_condition +=
          std::string(" AND #id ") + (request.newest_first ? "<" : ">") + (same_too ? "= :id" : " :id");
      query.names.emplace("#id", place_.columns().id);
      query.values.emplace(":id", AttributeValue::number(request.beyond->id));
    }
    query.forward = !request.newest_first;
    query.limit = static_cast<std::int64_t>(request.limit);
    return query;
  }

  std::vector<std::uint32_t> all_buckets(Deadline deadline) {
    std::vector<std::uint32_t> buckets(place_.table().buckets);
    std::iota(buckets.begin(), buckets.end(), 0U);
    const auto higher = place_.higher_buckets(deadline);
    buckets.insert(buckets.end(), higher.begin(), higher.end());
    return buckets;
  }

  void look_for_buckets(std::vector<Finding>& findings, const std::string& where, Deadline deadline) {
    const auto found = place_.look_for_buckets(deadline);
    if (!found) {
      findings.push_back({false, found.error().code(),
                          "cannot look for rows beyond the configured buckets, which needs dynamodb:Scan: " +
                              found.error().message()});
      return;
    }
    const auto remark = [&](const std::string& text) { findings.push_back({false, ErrorCode::invalid, where + text}); };
    std::string unknown = joined(found->unknown);
    const std::size_t end = unknown.find(',', kMostNamed);
    const bool more = found->more || end != std::string::npos;
    unknown.resize(std::min(unknown.size(), end));
    if (!unknown.empty()) {
      remark(
          "rows in buckets " + unknown + (more ? " and others" : "") +
          " are published by nobody: buckets are numbers below 4096 without leading zeros; mend the writer, and move "
          "these rows to their aggregates' buckets");
    }
    if (!found->higher.empty()) {
      remark("rows in buckets " + joined(mapped(found->higher, partition_of)) +
             " are beyond buckets = " + std::to_string(place_.table().buckets) +
             "; they are published, but new buckets are found once an hour only: where writers still name them, raise "
             "'buckets' to " +
             std::to_string(found->higher.back() + 1));
    }
  }

  OutboxPlace& place_;
};

class DynamoDbOutbox final : public Database {
 public:
  DynamoDbOutbox(Settings settings, dynamo::Client& client, const Clock& clock, Random& random)
      : place_(std::move(settings), client, clock), random_(random) {}

  Result<std::unique_ptr<LockSession>> open_locks(Deadline /*deadline*/) override {
    // A heartbeat costs a write unit: no more of them than the lease needs.
    const Settings& settings = place_.settings();
    return make_lease_locks(std::make_unique<DynamoDbLeaseBook>(place_), settings, settings.config.lease / 3,
                            place_.clock(), random_);
  }
  Result<std::unique_ptr<ReadSession>> open_reader(Deadline /*deadline*/) override {
    return make_dynamodb_reader(place_);
  }
  Result<std::unique_ptr<AdminSession>> open_admin(Deadline /*deadline*/) override {
    return std::unique_ptr<AdminSession>(std::make_unique<DynamoDbAdmin>(place_));
  }

  // CloudFormation is what people keep such a table in.
  std::string ddl(bool /*in_use*/) const override {
    const config::OutboxColumns& names = place_.columns();
    return "# An outbox that rows are put into, in the transaction that makes the event, with\n#   bucket: \"0\" to "
           "\"" +
           std::to_string(place_.table().buckets - 1) +
           "\", the same for all rows of one aggregate (a hash of its id)\n#   " + names.id +
           ": a number that grows, such as a snowflake or the time in microseconds\n#   " + names.aggregate_type +
           ", " + names.aggregate_id + ", " + names.event + ", " + names.payload + R"(
# A row that has been sent is deleted.
Resources:
  Outbox:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: Retain
    Properties:
      TableName: )" +
           place_.table().table + R"(
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions:
        - {AttributeName: bucket, AttributeType: S}
        - {AttributeName: )" +
           names.id + R"(, AttributeType: N}
      KeySchema:
        - {AttributeName: bucket, KeyType: HASH}
        - {AttributeName: )" +
           names.id + ", KeyType: RANGE}\n";
  }

 private:
  OutboxPlace place_;
  Random& random_;
};

}  // namespace

std::unique_ptr<Database> make_dynamodb_outbox(Settings settings, dynamo::Client& client, const Clock& clock,
                                               Random& random) {
  return std::make_unique<DynamoDbOutbox>(std::move(settings), client, clock, random);
}

}  // namespace sluice::queue::outbox
