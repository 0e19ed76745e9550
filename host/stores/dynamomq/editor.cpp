#include "host/stores/dynamomq/editor.hpp"

#include <array>
#include <utility>

#include "base/timestamp.hpp"
#include "host/queue/message.hpp"
#include "host/stores/dynamomq/content_edit.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/item_values.hpp"

namespace sluice::queue::dynamomq {
namespace {

constexpr std::array kContent{attribute::kData, attribute::kContentType, attribute::kAttributes, attribute::kGroup};

// The update of what has become different. Names stand behind placeholders, because some are reserved.
class Update {
 public:
  Update(const table::QueueTable& place, const std::string& id, const table::VersionMark& before) {
    request_.table = place.table;
    request_.key.emplace(attribute::kId, id);
    request_.names.emplace("#version", attribute::kVersion);
    if (before.stored) {
      request_.condition = "attribute_exists(id) AND #version = :before";
      request_.values.emplace(":before", *before.stored);
    } else {
      request_.condition = "attribute_exists(id) AND attribute_not_exists(#version)";
    }
    request_.return_values = "ALL_NEW";
    set(attribute::kVersion, dynamo::AttributeValue::number(before.next()));
  }

  void set(std::string_view name, dynamo::AttributeValue value) {
    const std::string placeholder = this->name(name);
    sets_ += (sets_.empty() ? "SET " : ", ") + placeholder + " = :" + placeholder.substr(1);
    request_.values.emplace(":" + placeholder.substr(1), std::move(value));
  }
  void remove(std::string_view name) { removals_ += (removals_.empty() ? " REMOVE " : ", ") + this->name(name); }

  dynamo::UpdateItemRequest finish() && {
    request_.update = sets_ + removals_;
    return std::move(request_);
  }

 private:
  std::string name(std::string_view name) {
    std::string placeholder = "#" + std::string(name);
    request_.names.emplace(placeholder, name);
    return placeholder;
  }

  dynamo::UpdateItemRequest request_;
  std::string sets_;
  std::string removals_;
};

void add_difference(Update& update, const dynamo::Item& before, const dynamo::Item& after) {
  for (const std::string_view name : kContent) {
    const auto old = before.find(name);
    const auto now = after.find(name);
    if (now == after.end()) {
      if (old != before.end()) {
        update.remove(name);
      }
    } else if (old == before.end() || !(old->second == now->second)) {
      update.set(name, now->second);
    }
  }
}

}  // namespace

Result<dynamo::Item> Editor::write(const dynamo::UpdateItemRequest& update, const WriteTrace& trace,
                                   Deadline deadline) const {
  table::StatementOutcome outcome;
  for (int tries = 1; tries <= kMaxTries; ++tries) {
    auto answer = parts_.client.update_item(update, deadline);
    const bool unclear = answer ? !trace.is_on(answer->item) : table::outcome_unknown(answer.error());
    outcome.error = answer
                        ? dynamo::Error(dynamo::ErrorKind::malformed_response, "an edit was answered without its item")
                        : answer.error();
    if (answer && !unclear) {
      return std::move(answer->item);
    }
    const bool refused = !answer && outcome.error.kind == dynamo::ErrorKind::conditional_check_failed;
    if (!unclear && !refused) {
      outcome.fate = outcome.repeated ? table::StatementFate::unknown : table::StatementFate::failed;
      return recovery_.error_of(outcome);
    }
    outcome.fate = refused ? table::StatementFate::refused : table::StatementFate::unknown;
    recovery_.recover(std::span(&trace, 1), std::span(&outcome, 1), deadline);
    if (outcome.fate == table::StatementFate::done) {
      return std::move(outcome.item);
    }
    if (outcome.fate == table::StatementFate::refused) {
      const auto record = inspector_.record(trace.id, deadline);
      return record ? changed_since(place_.queue, trace.id) : record.error();
    }
    outcome.repeated = true;  // it may still arrive: then the next try, which is the very same, is refused
  }
  return recovery_.error_of(outcome);
}

Result<StoredMessage> Editor::edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                                   Deadline deadline) const {
  SLUICE_TRY(before, inspector_.record(id, deadline));
  const table::VersionMark found = version_of(*before);
  if (found.number != version) {
    return changed_since(place_.queue, id);
  }
  dynamo::Item wanted = *before;
  SLUICE_PASS_ON(apply_edits(wanted, edits));
  const std::size_t bytes = table::item_bytes(wanted) + kClaimBytes;
  if (bytes > table::kMaxItemBytes && bytes > table::item_bytes(*before) + kClaimBytes) {
    return Error(ErrorCode::invalid,
                 "message '" + id + "' would take " + std::to_string(bytes) + " bytes as an item and DynamoDB holds " +
                     std::to_string(table::kMaxItemBytes) + "; keep the body elsewhere and put where it is");
  }
  const WriteTrace trace{WriteTrace::Kind::update, id, parts_.nonces.anonymous(), found.number};
  Update update(place_, id, found);
  update.set(attribute::kUpdatedAt, format_timestamp(parts_.clock.wall_now()));
  update.set(attribute::kNonce, trace.nonce);
  add_difference(update, *before, wanted);
  SLUICE_TRY(after, write(std::move(update).finish(), trace, deadline));
  return decode_record(*after);
}

}  // namespace sluice::queue::dynamomq
