#include "host/queue/dynamomq/editor.hpp"

#include <array>

namespace sluice::queue::dynamomq {
namespace {

// What a content brings, or takes away by not bringing it. `data` is always there.
constexpr std::array kOptionalContent{attribute::kContentType, attribute::kAttributes, attribute::kGroup};

Error conflict(const QueueTable& place, const std::string& id, std::string_view why) {
  return {ErrorCode::conflict, "message '" + id + "' of queue '" + place.queue + "' " + std::string(why)};
}

RecordChange content_change(const dynamo::Item& content, const dynamo::Item& before) {
  RecordChange change;
  change.set.emplace_back(attribute::kData, content.at(std::string(attribute::kData)));
  for (const std::string_view name : kOptionalContent) {
    if (const auto found = content.find(name); found != content.end()) {
      change.set.emplace_back(name, found->second);
    } else if (before.find(name) != before.end()) {
      change.removed.push_back(name);
    }
  }
  return change;
}

}  // namespace

bool Editor::is_own_write(const std::string& id, std::string_view nonce, Deadline deadline) {
  const auto record = inspector_.record(id, deadline);
  return record && nonce_of(*record) == nonce;
}

Result<dynamo::Item> Editor::write(const Expected& expected, const RecordChange& change, Deadline deadline) {
  const std::string nonce = parts_.nonces.next();
  std::vector<KeyedStatement> statements;
  statements.push_back(build_.update(expected, {nonce, parts_.clock.wall_now()}, change, true));
  auto outcome = std::move(parts_.runner.run(std::move(statements), Repetition::until_known, deadline).front());
  if (outcome.fate == StatementFate::done) {
    return std::move(outcome.item);
  }
  if (outcome.repeated && is_own_write(expected.id, nonce, deadline)) {
    return inspector_.record(expected.id, deadline);
  }
  if (outcome.fate == StatementFate::refused) {
    return conflict(place_, expected.id, "was changed by somebody else in between; look at it again");
  }
  return store_error(place_, outcome.error);
}

Result<StoredMessage> Editor::edit(const StoredMessage& expected, const NewMessage& content, Deadline deadline) {
  auto encoded = encode_content(content);
  if (!encoded) {
    return encoded.error();
  }
  const auto before = inspector_.record(expected.message.id, deadline);
  if (!before) {
    return before.error();
  }
  const VersionMark version = VersionMark::of(*before);
  if (version.number != expected.version) {
    return conflict(place_, expected.message.id, "was changed by somebody else in between; look at it again");
  }
  const auto after = write({expected.message.id, version, {}}, content_change(*encoded, *before), deadline);
  if (!after) {
    return after.error();
  }
  return decode_record(*after);
}

Result<void> Editor::remove(const std::string& id, Deadline deadline) {
  // The version is not asked for, so that the item which comes back is what tells whether it was there.
  for (int race = 0; race < kMaxRaces; ++race) {
    const auto record = inspector_.record(id, deadline);
    if (!record) {
      return record.error();
    }
    std::vector<KeyedStatement> statements;
    statements.push_back(build_.remove({id, VersionMark::of(*record), {}}));
    const auto outcome = std::move(parts_.runner.run(std::move(statements), Repetition::until_known, deadline).front());
    if (outcome.fate == StatementFate::done) {
      return {};
    }
    if (outcome.fate != StatementFate::refused) {
      return store_error(place_, outcome.error);
    }
  }
  return conflict(place_, id, "is changed by others all the time; try again");
}

Result<void> Editor::dead_letter(const std::string& id, const Failure& failure, Deadline deadline) {
  for (int race = 0; race < kMaxRaces; ++race) {
    const auto record = inspector_.record(id, deadline);
    if (!record) {
      return record.error();
    }
    if (decode_record(*record).queue_type == QueueType::dlq) {
      return {};
    }
    RecordChange change = dead_letter_change(parts_.clock.wall_now());
    if (!failure.empty()) {
      change.set.emplace_back(attribute::kFailure, encode_failure(failure));
    }
    const auto moved = write({id, VersionMark::of(*record), {}}, change, deadline);
    if (moved) {
      return {};
    }
    if (moved.error().code() != ErrorCode::conflict) {
      return moved.error();
    }
  }
  return conflict(place_, id, "is changed by others all the time; try again");
}

Result<void> Editor::redrive(const std::string& id, Deadline deadline) {
  const auto record = inspector_.record(id, deadline);
  if (!record) {
    return record.error();
  }
  const StoredMessage message = decode_record(*record);
  if (message.queue_type != QueueType::dlq) {
    return conflict(place_, id, "is not in the DLQ");
  }
  const WallTime now = parts_.clock.wall_now();
  if (message.invisible_until && now <= *message.invisible_until) {
    return conflict(place_, id, "is being worked on in the DLQ; try again when that has ended");
  }
  const auto moved = write({id, VersionMark::of(*record), QueueType::dlq}, redrive_change(now), deadline);
  if (!moved) {
    return moved.error();
  }
  return {};
}

Result<BulkResult> Editor::purge(QueueType type, const BulkProgress& progress, Deadline deadline) {
  dynamo::QueryRequest query;
  query.table = place_.table;
  query.index = place_.index;
  query.key_condition = "queue_type = :type";
  query.values.emplace(":type", std::string(to_string(type)));
  query.projection = "id";
  query.limit = static_cast<std::int64_t>(kMaxStatementsPerBatch * StatementRunner::kMaxBatchesAtOnce);
  BulkResult result;
  do {
    auto page = parts_.client.query(query, deadline);
    if (!page) {
      return store_error(place_, page.error());
    }
    std::vector<KeyedStatement> statements;
    for (const auto& item : page->items) {
      if (const auto* id = dynamo::find<std::string>(item, attribute::kId)) {
        statements.push_back(build_.remove_from(*id, type));
      }
    }
    const bool any = !statements.empty();
    for (const auto& outcome : parts_.runner.run(std::move(statements), Repetition::until_known, deadline)) {
      if (outcome.fate == StatementFate::unknown || outcome.fate == StatementFate::failed) {
        return store_error(place_, outcome.error);
      }
      ++(outcome.fate == StatementFate::done ? result.done : result.skipped);
    }
    query.exclusive_start_key = std::move(page->last_evaluated_key);
    if (any && progress && !progress(result.done)) {
      break;
    }
  } while (!query.exclusive_start_key.empty());
  return result;
}

}  // namespace sluice::queue::dynamomq
