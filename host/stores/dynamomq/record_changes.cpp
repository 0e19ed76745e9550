#include "host/stores/dynamomq/record_changes.hpp"

#include <iterator>
#include <utility>

#include "base/timestamp.hpp"
#include "host/stores/table/times.hpp"

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

table::RecordChange claim_change(std::uint32_t receive_count, bool mark, WallTime now, WallTime invisible_until) {
  table::RecordChange change{{{attribute::kReceiveCount, AttributeValue::number(receive_count)},
                              {attribute::kReceivedAt, format_timestamp(now)},
                              {attribute::kInvisibleUntilAt, format_timestamp(invisible_until)}},
                             {}};
  if (mark) {
    change.set.emplace_back(attribute::kSuspect, AttributeValue::number(1));
  }
  return change;
}

table::RecordChange extend_change(WallTime invisible_until) {
  return {{{attribute::kInvisibleUntilAt, format_timestamp(invisible_until)}}, {}};
}

table::RecordChange put_off_change(std::optional<WallTime> invisible_until) {
  return {{{attribute::kInvisibleUntilAt, stored_time(invisible_until)}, {attribute::kReceivedAt, ""}}, {}};
}

table::RecordChange dead_letter_change(WallTime now) {
  return {{{attribute::kQueueType, std::string(to_string(Half::dlq))},
           {attribute::kReceiveCount, AttributeValue::number(0)},
           {attribute::kSentAt, format_timestamp(now)},
           {attribute::kReceivedAt, ""},
           {attribute::kInvisibleUntilAt, ""}},
          {}};
}

table::RecordChange redrive_change(WallTime now) {
  table::RecordChange change = dead_letter_change(now);
  change.set.front().second = std::string(to_string(Half::standard));
  return change;
}

table::RecordChange delay_change(WallTime now, Duration delay) {
  const std::string due = format_timestamp(table::later(now, delay));
  return {{{attribute::kSentAt, due},
           {attribute::kReceivedAt, ""},
           {attribute::kInvisibleUntilAt, delay > Duration::zero() ? due : std::string()}},
          {}};
}

table::RecordChange sent_change(WallTime sent_at) {
  return {{{attribute::kSentAt, format_timestamp(sent_at)},
           {attribute::kReceivedAt, ""},
           {attribute::kInvisibleUntilAt, ""}},
          {}};
}

table::RecordChange reset_change(WallTime now) {
  table::RecordChange change = redrive_change(now);
  change.set.emplace_back(attribute::kCreatedAt, format_timestamp(now));
  return change;
}

}  // namespace sluice::queue::dynamomq
