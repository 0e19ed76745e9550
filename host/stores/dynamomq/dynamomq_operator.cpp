#include <algorithm>
#include <array>
#include <charconv>
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

constexpr char kTableCursor = 't';  // what a cursor of a consistent list begins with; no hexadecimal digit
constexpr std::size_t kScanPage = 1'000;
constexpr std::size_t kLongestCursor = 16 * 1024;

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

// Where a list goes on after that message, as opaque text: "<length of sent_at>:<sent_at><id>" in hexadecimal.
std::string encode_cursor(const dynamo::Item& last) {
  const std::string sent_at = dynamo::text_of(last, attribute::kSentAt);
  return to_hex(std::to_string(sent_at.size()) + ':' + sent_at + dynamo::text_of(last, attribute::kId));
}

std::string encode_table_cursor(const dynamo::Item& last) {
  return kTableCursor + to_hex(dynamo::text_of(last, attribute::kId));
}

std::optional<std::string> bytes_of(std::string_view hex) {
  return hex.size() > kLongestCursor ? std::nullopt : from_hex(hex);
}

Error no_cursor() {
  return {ErrorCode::invalid, "the cursor is not one that such a list has given; leave it out to begin at the start"};
}

Result<dynamo::Item> decode_cursor(std::string_view cursor, Half half) {
  const auto plain = bytes_of(cursor);
  if (!plain) {
    return no_cursor();
  }
  std::size_t length = 0;
  const auto [stop, failure] = std::from_chars(plain->data(), plain->data() + plain->size(), length);
  const auto start = static_cast<std::size_t>(stop - plain->data()) + 1;
  if (failure != std::errc() || start > plain->size() || *stop != ':' || length == 0 ||
      length >= plain->size() - start) {
    return no_cursor();
  }
  dynamo::Item key;
  key.emplace(attribute::kQueueType, std::string(to_string(half)));
  key.emplace(attribute::kSentAt, plain->substr(start, length));
  key.emplace(attribute::kId, plain->substr(start + length));
  return key;
}

Result<dynamo::Item> decode_table_cursor(std::string_view cursor) {
  const auto id = cursor.front() == kTableCursor ? bytes_of(cursor.substr(1)) : std::nullopt;
  if (!id || !is_storable_id(*id)) {
    return no_cursor();
  }
  return dynamo::Item{{std::string(attribute::kId), *id}};
}

/// The operators' side of one queue. What it changes, the sources of this process know at once.
///
/// A change whose version is given is written at once, conditional on it, without a look,
/// but for a dead letter with a reason, which keeps the failures before it.
class DynamoMqOperator final : public table::RecordOperator {
 public:
  /// The references must outlive the operator.
  DynamoMqOperator(table::StoreParts parts, QueueState& queue, Doorbell& doorbell)
      : RecordOperator(parts, make_dynamomq_layout(parts, queue.place), doorbell), queue_(queue) {}

  /// From the index, oldest first; a consistent look reads the whole table, in no order.
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    return request.consistent ? list_table(request, deadline) : list_index(request, deadline);
  }

  /// Reads the whole partition once, or with a consistent look the whole table, both halves, at twice the price.
  /// DynamoDB bills whole items, however little of them it is asked to return.
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override {
    const OverviewRequest wanted{.half = request.half, .ids = 0};
    dynamo::ScanRequest scan = table_scan(request.half);
    project_counted(scan);
    const auto seen = request.consistent ? count(wanted,
                                                 [&](const dynamo::Item& after) {
                                                   scan.exclusive_start_key = after;
                                                   return parts_.client.scan(scan, deadline);
                                                 })
                                         : overview(wanted, deadline);
    return seen ? Result<QueueStats>(seen->counts) : seen.error();
  }

  /// The same pass, and what else it can tell.
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override {
    dynamo::QueryRequest query = partition_query(request.half);
    project_counted(query);
    if (request.errors > 0) {
      table::project(query, {attribute::kFailure});
    }
    return count(request, [&](const dynamo::Item& after) {
      query.exclusive_start_key = after;
      return parts_.client.query(query, deadline);
    });
  }

  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) override {
    auto edited = RecordOperator::edit(id, version, edits, deadline);
    queue_.changed(id, parts_.clock.wall_now());
    return edited;
  }

  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override {
    auto results = put_records(parts_, place(), records, mode, deadline);
    for (const StoredMessage& record : records) {
      queue_.put(record);
    }
    doorbell_.ring_put(place().queue, results);
    return results;
  }

 private:
  dynamo::QueryRequest partition_query(Half half) const {
    dynamo::QueryRequest query;
    query.table = place().table;
    query.index = place().index;
    query.key_condition = "queue_type = :type";
    query.values.emplace(":type", std::string(to_string(half)));
    return query;
  }

  dynamo::ScanRequest table_scan(Half half) const {
    dynamo::ScanRequest scan;
    scan.table = place().table;
    scan.filter = "queue_type = :type";
    scan.values.emplace(":type", std::string(to_string(half)));
    scan.consistent = true;
    return scan;
  }

  Result<ListPage> list_table(const ListRequest& request, Deadline deadline) const {
    dynamo::ScanRequest scan = table_scan(request.half);
    scan.limit = kScanPage;
    if (!request.cursor.empty()) {
      SLUICE_TRY(key, decode_table_cursor(request.cursor));
      scan.exclusive_start_key = std::move(*key);
    }
    return listed(scan, request, encode_table_cursor,
                  [&](std::size_t /*room*/) { return parts_.client.scan(scan, deadline); });
  }

  Result<ListPage> list_index(const ListRequest& request, Deadline deadline) const {
    dynamo::QueryRequest query = partition_query(request.half);
    query.forward = !request.newest_first;
    if (!request.cursor.empty()) {
      SLUICE_TRY(key, decode_cursor(request.cursor, request.half));
      query.exclusive_start_key = std::move(*key);
    }
    return listed(query, request, encode_cursor, [&](std::size_t room) {
      query.limit = static_cast<std::int64_t>(std::min(room, kScanPage));
      return parts_.client.query(query, deadline);
    });
  }

  /// `next_page` makes `request` where the last page ended, for so many messages.
  template <typename Request, typename NextPage>
  Result<ListPage> listed(Request& request, const ListRequest& wanted, std::string (*cursor_of)(const dynamo::Item&),
                          NextPage next_page) const {
    if (!wanted.content) {
      project_record(request);
    }
    ListPage result;
    std::size_t bytes = 0;
    const auto full = [&] { return result.messages.size() >= wanted.limit || bytes >= table::kListBytes; };
    for (bool more = true; more && !full();) {
      auto page = next_page(wanted.limit - result.messages.size());
      if (!page) {
        return table::store_error(place(), page.error());
      }
      std::size_t taken = 0;
      for (; taken < page->items.size() && !full(); ++taken) {
        add_listed(result, bytes, page->items[taken], wanted);
      }
      more = taken < page->items.size() || !page->last_evaluated_key.empty();
      if (more && full()) {
        result.next = cursor_of(page->items[taken - 1]);
      }
      request.exclusive_start_key = std::move(page->last_evaluated_key);
    }
    return result;
  }

  // The time by which the records are judged is taken after the first answer, which may have put it right.
  template <typename NextPage>
  Result<QueueOverview> count(const OverviewRequest& request, NextPage next_page) const {
    std::optional<table::OverviewCount> count;
    dynamo::Item after;
    do {
      auto page = next_page(after);
      if (!page) {
        return table::store_error(place(), page.error());
      }
      if (!count) {
        count.emplace(request, parts_.clock.wall_now());
      }
      for (const auto& item : page->items) {
        count->add(decode_standing(item));
      }
      after = std::move(page->last_evaluated_key);
    } while (!after.empty());
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
        dynamo::QueryRequest query = partition_query(half);
        query.projection = "sent_at";
        query.limit = 1;
        const auto page = parts_.client.query(query, deadline);
        if (!page) {
          task->end(ChangeStatus::failed, 0, table::store_error(place(), page.error()));
          continue;
        }
        front = page->items.empty() ? now : Candidate::of(page->items.front()).sent_at;
      }
      front = core::place_before(front, now);
      task->front = front;
    }
  }

  table::RecordWrite write_of(Task& task, WallTime now) const {
    const Change& change = *task.change;
    if (task.removes() && !change.version) {
      table::RecordWrite removal = removal_of(place().table, {change.id, {}});
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
      return removal_of(place().table, std::move(expected));
    }
    const MayHave may_have{.marks = !seen || marks_of(task.item) != 0,
                           .failure = !seen || task.item.contains(attribute::kFailure),
                           .checkpoint = !seen || task.item.contains(attribute::kCheckpoint)};
    task.nonce = parts_.nonces.anonymous();
    return update_of(place().table, std::move(expected), {task.nonce, now}, attributes_of(task.wanted(now), may_have));
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
      Candidate record;
      record.id = change.id;
      record.sort_key = format_timestamp(*task.front);
      record.sent_at = *task.front;
      record.version = table::VersionMark::number_of(task.result->version);
      record.receive_count = Candidate::of(task.item).receive_count;
      record.nonce = task.nonce;
      queue_.state_of(decode_standing(task.item).half).backlog.keep(std::move(record));
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

std::unique_ptr<Operator> make_operator(table::StoreParts parts, QueueState& queue, Doorbell& doorbell) {
  return std::make_unique<DynamoMqOperator>(parts, queue, doorbell);
}

}  // namespace sluice::queue::dynamomq
