#include <algorithm>
#include <array>
#include <utility>

#include "base/text/hex.hpp"
#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "host/queue/message.hpp"
#include "host/stores/dynamomq/content_edit.hpp"
#include "host/stores/dynamomq/dynamomq_roles.hpp"
#include "host/stores/dynamomq/queue_state.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/record_writes.hpp"
#include "host/stores/table/record_operator.hpp"

namespace sluice::queue::dynamomq {
namespace {

constexpr std::size_t kScanPage = 1'000;
constexpr std::size_t kLongestCursor = 64 * 1024;

template <typename Request>
void project_record(Request& request) {
  table::project(request, {attribute::kId, attribute::kReceiveCount, attribute::kQueueType, attribute::kVersion,
                           attribute::kCreatedAt, attribute::kUpdatedAt, attribute::kSentAt, attribute::kReceivedAt,
                           attribute::kInvisibleUntilAt, attribute::kFailure, attribute::kMarks});
}

template <typename Request>
void project_counted(Request& request) {
  table::project(request, {attribute::kId, attribute::kSentAt, attribute::kReceivedAt, attribute::kReceiveCount,
                           attribute::kInvisibleUntilAt});
}

void add_listed(ListPage& page, std::size_t& bytes, const dynamo::Item& item, const ListRequest& request) {
  StoredMessage record = request.content ? decode_record(item) : decode_standing(item);
  if (!request.content) {
    note_oddities(record, item);
  } else if (request.native && !says_all(record, item)) {
    record.native = dynamo::encode_item(item);
  }
  bytes += payload_bytes(record);
  page.messages.push_back(std::move(record));
}

// Where a list goes on after that message, as opaque text: the item of its key in the index or, of a consistent list,
// in the table, in hexadecimal. The half is the list's.
std::string encode_cursor(const dynamo::Item& last, const ListRequest& request) {
  dynamo::Item key = kNames.key(dynamo::text_of(last, attribute::kId));
  if (!request.consistent) {
    key.emplace(attribute::kSentAt, dynamo::text_of(last, attribute::kSentAt));
  }
  return to_hex(dynamo::encode_item(key));
}

Result<dynamo::Item> decode_cursor(const ListRequest& request) {
  const auto plain = request.cursor.size() > kLongestCursor ? std::nullopt : from_hex(request.cursor);
  auto key = dynamo::decode_item(plain.value_or(std::string()));
  const std::size_t parts = request.consistent ? 1 : 2;
  if (!key || key->size() != parts || dynamo::text_of(*key, attribute::kId).empty() ||
      dynamo::text_of(*key, attribute::kSentAt).empty() != request.consistent) {
    return Error(ErrorCode::invalid,
                 "the cursor is not one that such a list has given; leave it out to begin at the start");
  }
  if (!request.consistent) {
    key->emplace(attribute::kQueueType, std::string(to_string(request.half)));
  }
  return std::move(*key);
}

/// The operators' side of one queue. What it changes, the sources of this process know at once.
///
/// A change whose version is given is written at once, conditional on it, without a look,
/// but for a dead letter with a reason, which keeps the failures before it.
class DynamoMqOperator final : public table::RecordOperator {
 public:
  /// The queue must outlive the operator.
  explicit DynamoMqOperator(QueueState& queue) : RecordOperator(*queue.layout), queue_(queue) {}

  /// From the index, oldest first; a consistent look reads the whole table, in no order.
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    dynamo::QueryRequest query = query_of_half(place(), request.half);
    query.forward = !request.newest_first;
    return request.consistent ? listed(table_scan(request.half), request, deadline) : listed(query, request, deadline);
  }

  /// Reads the whole partition once, or with a consistent look the whole table, both halves, at twice the price.
  /// DynamoDB bills whole items, however little of them it is asked to return.
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override {
    const OverviewRequest wanted{.half = request.half, .ids = 0};
    SLUICE_TRY(seen, request.consistent ? counted(table_scan(request.half), wanted, deadline)
                                        : counted(query_of_half(place(), request.half), wanted, deadline));
    return seen->counts;
  }

  /// The same pass, and what else it can tell.
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override {
    return counted(query_of_half(place(), request.half), request, deadline);
  }

  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override {
    std::vector<SendResult> fates(records.size());
    std::vector<Insert> inserts;
    for (std::size_t i = 0; i < records.size(); ++i) {
      fates[i].id = records[i].message.id;
      if (auto item = item_of(records[i])) {
        inserts.push_back({.item = std::move(*item), .result = &fates[i], .replace = mode == PutMode::replace});
      } else {
        fates[i] = {SendStatus::failed, {}, item.error()};
      }
    }
    put_new(layout_, inserts, deadline);
    for (const StoredMessage& record : records) {
      queue_.put(record);
    }
    auto results = table::put_results(std::move(fates));
    parts_.doorbell.ring_put(place().queue, results);
    return results;
  }

 private:
  /// The item that puts this record.
  Result<dynamo::Item> item_of(const StoredMessage& record) const {
    if (record.message.priority != Priority::normal) {
      return Error(ErrorCode::invalid,
                   "message '" + record.message.id + "' has the priority " +
                       std::string(to_string(record.message.priority)) +
                       ", and a DynamoDB table has none; take it away, or put it into the queue of its class");
    }
    SLUICE_TRY(item, encode_stored(record));
    item->insert_or_assign(std::string(attribute::kNonce), parts_.nonces.anonymous());
    if (auto error = table::too_large(*item, 0)) {
      return std::move(*error);
    }
    return std::move(*item);
  }

  Result<dynamo::Page> page_of(const dynamo::QueryRequest& request, Deadline deadline) const {
    return table::checked(place(), parts_.client.query(request, deadline));
  }
  Result<dynamo::Page> page_of(const dynamo::ScanRequest& request, Deadline deadline) const {
    return table::checked(place(), parts_.client.scan(request, deadline));
  }

  dynamo::ScanRequest table_scan(Half half) const {
    dynamo::ScanRequest scan;
    scan.table = place().table;
    scan.filter = "queue_type = :type";
    scan.values.emplace(":type", std::string(to_string(half)));
    scan.consistent = true;
    return scan;
  }

  template <typename Request>
  Result<ListPage> listed(Request request, const ListRequest& wanted, Deadline deadline) const {
    if (!wanted.cursor.empty()) {
      SLUICE_TRY(key, decode_cursor(wanted));
      request.exclusive_start_key = std::move(*key);
    }
    if (!wanted.content) {
      project_record(request);
    }
    ListPage result;
    std::size_t bytes = 0;
    const auto full = [&] { return result.messages.size() >= wanted.limit || bytes >= table::kListBytes; };
    for (bool more = true; more && !full();) {
      // Of a scan it counts what is filtered out, too.
      const std::size_t room = wanted.consistent ? kScanPage : wanted.limit - result.messages.size();
      request.limit = static_cast<std::int64_t>(std::min(room, kScanPage));
      SLUICE_TRY(page, page_of(request, deadline));
      std::size_t taken = 0;
      for (; taken < page->items.size() && !full(); ++taken) {
        add_listed(result, bytes, page->items[taken], wanted);
      }
      more = taken < page->items.size() || !page->last_evaluated_key.empty();
      if (more && full()) {
        result.next = encode_cursor(page->items[taken - 1], wanted);
      }
      request.exclusive_start_key = std::move(page->last_evaluated_key);
    }
    return result;
  }

  // The time by which the records are judged is taken after the first answer, which may have put it right.
  template <typename Request>
  Result<QueueOverview> counted(Request request, const OverviewRequest& wanted, Deadline deadline) const {
    project_counted(request);
    if (wanted.errors > 0) {
      table::project(request, {attribute::kFailure});
    }
    std::optional<table::OverviewCount> count;
    do {
      SLUICE_TRY(page, page_of(request, deadline));
      if (!count) {
        count.emplace(wanted, parts_.clock.wall_now());
      }
      for (const auto& item : page->items) {
        count->add(decode_standing(item));
      }
      request.exclusive_start_key = std::move(page->last_evaluated_key);
    } while (!request.exclusive_start_key.empty());
    return std::move(*count).finish();
  }

  // `reset` takes away only what is there, the front depends on the half, and a reason is kept with those before it.
  bool needs_look(const Change& change) const override {
    switch (change.action) {
      case ChangeAction::move_to_front:
      case ChangeAction::reset:
        return true;
      case ChangeAction::remove:
        return change.version && *change.version == 0;
      case ChangeAction::dead_letter:
        return !change.failure.empty() || change.version.value_or(0) == 0;
      default:
        return change.version.value_or(0) == 0;  // 0 does not say how the record spells it
    }
  }

  // The times that put messages before all others of their halves. One look for each half.
  void find_fronts(const std::vector<Task*>& tasks, WallTime now, Deadline deadline) const {
    std::array<std::optional<WallTime>, 2> fronts;
    for (Task* task : tasks) {
      if (task->change->action != ChangeAction::move_to_front || task->front) {
        continue;
      }
      const Half half = decode_standing(task->item).half;
      auto& front = fronts[half == Half::dlq ? 1 : 0];
      if (!front) {
        dynamo::QueryRequest query = query_of_half(place(), half);
        query.projection = "sent_at";
        query.limit = 1;
        const auto page = page_of(query, deadline);
        if (!page) {
          task->end(ChangeStatus::failed, 0, page.error());
          continue;
        }
        front = page->items.empty() ? now : Candidate::of(page->items.front()).state.sent_at;
      }
      front = core::place_before(front, now);
      task->front = front;
    }
  }

  table::RecordWrite write_of(Task& task, WallTime now) const {
    const Change& change = *task.change;
    if (task.removes() && !change.version) {
      table::RecordWrite removal = removal_of(kNames, place().table, {change.id, {}});
      removal.whatever_it_is = true;
      return removal;
    }
    table::Expected expected{change.id, task.before};
    const bool seen = !task.item.empty();
    if (!seen) {  // the write itself has to see to what was not looked at
      const core::Requirement required = core::requirement(change.action);
      expected.half = required.half;
      if (required.not_in_flight) {
        expected.visible_at = now;
      }
    }
    if (task.removes()) {
      return removal_of(kNames, place().table, std::move(expected));
    }
    const table::MayHave may_have{.marks = !seen || marks_of(task.item) != 0,
                                  .failure = !seen || task.item.contains(attribute::kFailure),
                                  .checkpoint = !seen || task.item.contains(attribute::kCheckpoint)};
    task.nonce = parts_.nonces.anonymous();
    return update_of(kNames, place().table, std::move(expected), {task.nonce, now},
                     attributes_of(kNames, task.wanted(now), may_have));
  }

  void write(const std::vector<Task*>& tasks, Deadline deadline) const override {
    const WallTime now = parts_.clock.wall_now();
    find_fronts(tasks, now, deadline);
    std::vector<table::RecordWrite> writes;
    std::vector<Task*> written;
    for (Task* task : tasks) {
      if (task->open) {
        writes.push_back(write_of(*task, now));
        written.push_back(task);
      }
    }
    const auto outcomes = parts_.runner.run(std::move(writes), table::Repetition::until_known, deadline);
    for (std::size_t i = 0; i < written.size(); ++i) {
      note(*written[i], outcomes[i], false);
    }
  }

  void on_end(const Task& task) const override {
    const Change& change = *task.change;
    if (task.removes()) {
      return queue_.forget(change.id);
    }
    queue_.changed(change.id, later(parts_.clock.wall_now(), change.after));
    if (task.front && task.result->status == ChangeStatus::applied) {
      // This host need not find it.
      Candidate record = Candidate::of(task.item);
      record.sort_key = format_timestamp(*task.front);
      record.version = table::VersionMark::number_of(task.result->version);
      record.nonce = task.nonce;
      core::apply(task.wanted(*task.front), record.state);
      HalfBacklog& backlog = queue_.state_of(record.state.half).backlog;
      backlog.keep(std::move(record));
    }
  }

  Result<dynamo::Item> edited(const dynamo::Item& before, std::span<const ContentEdit> edits,
                              Deadline /*deadline*/) const override {
    dynamo::Item after = before;
    SLUICE_PASS_ON(apply_edits(after, edits));
    return after;
  }

  QueueState& queue_;
};

}  // namespace

std::unique_ptr<Operator> make_operator(QueueState& queue) { return std::make_unique<DynamoMqOperator>(queue); }

}  // namespace sluice::queue::dynamomq
