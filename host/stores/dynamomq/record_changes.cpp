#include "host/stores/dynamomq/record_changes.hpp"

#include <iterator>
#include <utility>

#include "base/timestamp.hpp"
#include "host/stores/table/item_values.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::AttributeValue;

std::string stored_time(std::optional<WallTime> time) { return time ? format_timestamp(*time) : std::string(); }

}  // namespace

table::RecordWrite WriteBuilder::insert(const std::string& id, dynamo::Item item) const {
  table::RecordWrite write{
      .kind = table::RecordWrite::Kind::insert, .table = table_, .expected = {id, {}}, .names = &kRecordNames};
  write.item = std::move(item);
  return write;
}

table::RecordWrite WriteBuilder::update(table::Expected expected, const WriteMark& mark, table::RecordChange change,
                                        bool returning) const {
  table::RecordWrite write{.kind = table::RecordWrite::Kind::update,
                           .table = table_,
                           .expected = std::move(expected),
                           .names = &kRecordNames};
  write.returning = returning;
  auto& set = write.change.set;
  set.reserve(change.set.size() + 3);
  set.emplace_back(attribute::kVersion, AttributeValue::number(write.expected.version.next()));
  set.emplace_back(attribute::kUpdatedAt, format_timestamp(mark.now));
  set.emplace_back(attribute::kNonce, std::string(mark.nonce));
  std::move(change.set.begin(), change.set.end(), std::back_inserter(set));
  write.change.removed = change.removed;
  return write;
}

table::RecordWrite WriteBuilder::remove(table::Expected expected, bool returning) const {
  table::RecordWrite write{.kind = table::RecordWrite::Kind::remove,
                           .table = table_,
                           .expected = std::move(expected),
                           .names = &kRecordNames};
  write.returning = returning;
  return write;
}

table::RecordWrite WriteBuilder::remove_any(const std::string& id) const {
  table::RecordWrite write = remove({id, {}}, true);
  write.whatever_it_is = true;
  return write;
}

table::RecordChange attributes_of(const core::StateChange& change, MayHave may_have) {
  table::RecordChange made;
  auto& set = made.set;
  if (change.half) {
    set.emplace_back(attribute::kQueueType, std::string(to_string(*change.half)));
  }
  if (change.receives) {
    set.emplace_back(attribute::kReceiveCount, AttributeValue::number(*change.receives));
  }
  if (change.sent_at) {
    set.emplace_back(attribute::kSentAt, format_timestamp(*change.sent_at));
  }
  if (change.received_at) {
    set.emplace_back(attribute::kReceivedAt, stored_time(*change.received_at));
  }
  if (change.hidden_until) {
    set.emplace_back(attribute::kInvisibleUntilAt, stored_time(*change.hidden_until));
  }
  if (change.created_at) {
    set.emplace_back(attribute::kCreatedAt, format_timestamp(*change.created_at));
  }
  if (change.failure && !change.failure->empty()) {
    set.emplace_back(attribute::kFailure, table::encode_failure(*change.failure));
  } else if (change.failure && may_have.failure) {
    made.removed = attribute::kFailure;
  }
  if (change.suspect.value_or(false)) {
    set.emplace_back(attribute::kSuspect, AttributeValue::number(1));
  } else if (change.suspect && may_have.suspect && made.removed.empty()) {
    made.removed = attribute::kSuspect;
  } else if (change.suspect && may_have.suspect) {
    set.emplace_back(attribute::kSuspect, AttributeValue::number(0));  // no statement takes away two
  }
  return made;
}

}  // namespace sluice::queue::dynamomq
