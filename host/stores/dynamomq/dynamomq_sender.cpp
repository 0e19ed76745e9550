#include "host/stores/dynamomq/dynamomq_sender.hpp"

#include "base/uuid.hpp"

namespace sluice::queue::dynamomq {
namespace {

SendResult failed(std::string id, Error error) { return {SendStatus::failed, std::move(id), std::move(error)}; }

Error duplicate(const QueueTable& place, const std::string& id) {
  return {ErrorCode::duplicate_id, "queue '" + place.queue + "' has a message '" + id + "' already"};
}

const dynamo::AttributeValue* value_of(const dynamo::Item& item, std::string_view name) {
  const auto found = item.find(name);
  return found == item.end() ? nullptr : &found->second;
}

bool same(const dynamo::Item& a, const dynamo::Item& b, std::string_view name) {
  const auto* left = value_of(a, name);
  const auto* right = value_of(b, name);
  return left != nullptr && right != nullptr && *left == *right;
}

}  // namespace

/// A message on its way: its place in the request, and its item.
struct DynamoMqSender::Draft {
  std::size_t place = 0;
  dynamo::Item item;

  // The nonce is replaced by whoever claims the message, the creation time never is.
  bool is(const dynamo::Item& record) const {
    return same(item, record, attribute::kNonce) ||
           (VersionMark::of(record).number > 1 && same(item, record, attribute::kCreatedAt) &&
            same(item, record, attribute::kData));
  }
};

std::vector<DynamoMqSender::Draft> DynamoMqSender::draft(std::span<const NewMessage> messages,
                                                         std::vector<SendResult>& results) {
  std::vector<Draft> drafts;
  drafts.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const NewMessage& message = messages[i];
    results[i].id = message.id.empty() ? make_uuid(random_) : message.id;
    auto item =
        encode_record(message, {results[i].id, parts_.clock.wall_now(), message.delay, parts_.nonces.anonymous()});
    if (item) {
      drafts.push_back({i, std::move(*item)});
    } else {
      results[i] = failed(std::move(results[i].id), item.error());
    }
  }
  return drafts;
}

std::vector<SendResult> DynamoMqSender::send(std::span<const NewMessage> messages, Deadline deadline) {
  std::vector<SendResult> results(messages.size());
  const auto drafts = draft(messages, results);
  std::vector<KeyedStatement> statements;
  statements.reserve(drafts.size());
  for (const auto& draft : drafts) {
    statements.push_back(build_.insert(results[draft.place].id, draft.item));
  }
  const auto outcomes = parts_.runner.run(std::move(statements), Repetition::until_known, deadline);
  for (std::size_t k = 0; k < drafts.size(); ++k) {
    SendResult& result = results[drafts[k].place];
    if (outcomes[k].fate == StatementFate::refused) {
      result = {SendStatus::duplicate_id, result.id, duplicate(place_, result.id)};
    } else if (outcomes[k].fate != StatementFate::done) {
      result = failed(result.id, store_error(place_, outcomes[k].error));
    }
  }
  recognise_own(drafts, outcomes, results, deadline);
  doorbell_.ring_sent(place_.queue, messages, results);
  return results;
}

void DynamoMqSender::recognise_own(const std::vector<Draft>& drafts, const std::vector<StatementOutcome>& outcomes,
                                   std::vector<SendResult>& results, Deadline deadline) {
  std::vector<std::size_t> doubtful;
  std::vector<std::string> ids;
  for (std::size_t k = 0; k < drafts.size(); ++k) {
    const bool unknown = outcomes[k].fate == StatementFate::unknown;
    if (unknown || (outcomes[k].fate == StatementFate::refused && outcomes[k].repeated)) {
      doubtful.push_back(k);
      ids.push_back(results[drafts[k].place].id);
    }
  }
  if (doubtful.empty()) {
    return;
  }
  const auto records = parts_.runner.read(place_.table, ids, deadline);
  for (const std::size_t k : doubtful) {
    SendResult& result = results[drafts[k].place];
    if (!records) {
      // Why the send itself got no answer says more than why the look afterwards got none.
      const bool unknown = outcomes[k].fate == StatementFate::unknown;
      const dynamo::Error& why = unknown ? outcomes[k].error : records.error();
      result = failed(result.id, Error(ErrorCode::unknown_outcome, store_error(place_, why).message()));
      continue;
    }
    const auto found = records->find(result.id);
    if (found == records->end()) {
      // Refused and now gone: it was our own first try, and somebody has finished with it since. An unknown one that
      // is not there may still be on its way.
      if (outcomes[k].fate == StatementFate::refused) {
        result = {SendStatus::sent, result.id, {}};
      }
      continue;
    }
    if (drafts[k].is(found->second)) {
      result = {SendStatus::sent, result.id, {}};
    } else {
      result = {SendStatus::duplicate_id, result.id, duplicate(place_, result.id)};
    }
  }
}

}  // namespace sluice::queue::dynamomq
