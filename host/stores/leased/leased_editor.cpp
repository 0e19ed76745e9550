#include "host/stores/leased/leased_editor.hpp"

#include <utility>

#include "host/queue/content_edit.hpp"
#include "host/queue/message.hpp"
#include "host/stores/leased/leased_actions.hpp"
#include "host/stores/leased/leased_changer.hpp"

namespace sluice::queue::leased {
namespace {

void take_over(dynamo::Item& into, const dynamo::Item& from, std::string_view name) {
  if (const auto stale = into.find(name); stale != into.end()) {
    into.erase(stale);
  }
  if (const auto fresh = from.find(name); fresh != from.end()) {
    into.emplace(fresh->first, fresh->second);
  }
}

}  // namespace

// Where it lies afterwards: a group is in one shard, and a priority is a part of the key, but for what was moved to the
// front.
Result<Place> LeasedEditor::place_for(const dynamo::Item& before, const Message& was, const Message& is,
                                      Deadline deadline) const {
  Place place = Place::of(before);
  if (was.priority != is.priority && is_sort_key(place.sort) && due_of(place.sort) >= kFrontEnd) {
    place.sort.front() = static_cast<char>('0' + static_cast<int>(is.priority));
  }
  const auto partition = parse_partition(place.partition);
  if (was.group != is.group && !is.group.empty() && partition) {
    SLUICE_TRY(shards, queue_.shards.get(deadline));
    place.partition = partition_of(partition->queue, partition->half, shard_of(is.group, shards->count, parts_.random));
  }
  return place;
}

Result<dynamo::Item> LeasedEditor::edited(const dynamo::Item& before, const std::string& id,
                                          std::span<const ContentEdit> edits, Deadline deadline) const {
  const Message was = decode_record(before, half_of(before)).message;
  Message is = was;
  SLUICE_PASS_ON(apply_edits(is, edits));
  SLUICE_TRY(content, encode_content({.id = {},
                                      .body = is.body,
                                      .content_type = is.content_type,
                                      .attributes = is.attributes,
                                      .group = is.group,
                                      .delay = {}}));
  SLUICE_TRY(place, place_for(before, was, is, deadline));
  dynamo::Item after = *place == Place::of(before) ? before : moved_item(before, *place);
  if (was.body != is.body || was.content_type != is.content_type) {
    take_over(after, *content, attribute::kBody);
    take_over(after, *content, attribute::kContentType);
  }
  if (was.attributes != is.attributes) {
    take_over(after, *content, attribute::kAttributes);
  }
  if (was.group != is.group) {
    take_over(after, *content, attribute::kGroup);
    take_over(after, {}, attribute::kHold);  // it held the other one back
  }
  dynamo::Item priority;
  if (is.priority != Priority::normal) {
    priority.emplace(attribute::kPriority, dynamo::AttributeValue::number(static_cast<int>(is.priority)));
  }
  take_over(after, priority, attribute::kPriority);
  const std::size_t bytes = table::item_bytes(after) + kLifeBytes;
  if (bytes > table::kMaxItemBytes && bytes > table::item_bytes(before) + kLifeBytes) {
    return Error(ErrorCode::invalid,
                 "message '" + id + "' would take " + std::to_string(bytes) + " bytes as an item and DynamoDB holds " +
                     std::to_string(table::kMaxItemBytes) + "; keep the body elsewhere and put where it is");
  }
  return after;
}

std::optional<dynamo::Error> LeasedEditor::put(const dynamo::Item& before, const dynamo::Item& after,
                                               Deadline deadline) const {
  const bool frees = Candidate::of(before).hold && !Candidate::of(after).hold;
  if (Place::of(before) != Place::of(after)) {
    const auto request = move_request(queue_.place, before, after, parts_.random);
    return parts_.store.client.transact_each(std::span(&request, 1), deadline).front().error;
  }
  dynamo::PutItemRequest request{.table = queue_.place.table, .item = after};
  request.condition = version_condition(version_of(before), request.names, request.values);
  const auto done = parts_.store.client.put_item(request, deadline);
  if (done && frees) {
    const auto hold = free_group(queue_.place, before);
    // Without it the group waits until an operator removes the message: it is not worth failing the edit.
    static_cast<void>(parts_.store.client.delete_item({.table = queue_.place.table,
                                                       .key = hold->item_or_key,
                                                       .condition = hold->condition,
                                                       .names = hold->names,
                                                       .values = hold->values},
                                                      deadline));
  }
  return done ? std::nullopt : std::optional(done.error());
}

Result<StoredMessage> LeasedEditor::write(const dynamo::Item& before, const dynamo::Item& after,
                                          Deadline deadline) const {
  const Candidate wanted = Candidate::of(after);
  for (int tries = 1;; ++tries) {
    const auto error = put(before, after, deadline);
    if (!error) {
      return decode_record(after, half_of(after));
    }
    const bool refused = error->kind == dynamo::ErrorKind::conditional_check_failed;
    if (!refused && !table::outcome_unknown(*error)) {
      return table::store_error(queue_.place, *error);
    }
    const auto found = inspector_.record(wanted.id, deadline);
    if (!found) {
      const bool gone = found.error().code() == ErrorCode::not_found;
      return gone ? found.error() : Error(ErrorCode::unknown_outcome, found.error().message());
    }
    if (Candidate::of(*found).nonce == wanted.nonce) {
      return decode_record(*found, half_of(*found));
    }
    if (!(version_of(*found).stored == version_of(before).stored)) {
      return changed_since(queue_.place.queue, wanted.id);
    }
    if (tries == kMaxTries) {
      return table::store_error(queue_.place, *error);
    }
  }
}

Result<StoredMessage> LeasedEditor::edit(const std::string& id, std::int64_t version,
                                         std::span<const ContentEdit> edits, Deadline deadline) const {
  SLUICE_TRY(before, inspector_.record(id, deadline));
  if (version_of(*before).number != version) {
    return changed_since(queue_.place.queue, id);
  }
  SLUICE_TRY(after, edited(*before, id, edits, deadline));
  touch(*after, parts_.store.nonces.anonymous(), parts_.store.clock.wall_now());
  return write(*before, *after, deadline);
}

}  // namespace sluice::queue::leased
