#include "host/stores/dynamomq/completion_writer.hpp"

namespace sluice::queue::dynamomq {
namespace {

std::optional<WallTime> visible_at(const Completion& completion, WallTime now) {
  return completion.delay > Duration::zero() ? std::optional(later(now, completion.delay)) : std::nullopt;
}

// The outcome of a write, before a refusal that may be its own doing has been looked into.
SettleResult result_of(const StatementOutcome& outcome, bool removal, const QueueTable& place) {
  switch (outcome.fate) {
    case StatementFate::done:
      // A DELETE of an absent record succeeds without an item. After a repeat it was our own first try that removed it.
      return {removal && outcome.item.empty() && !outcome.repeated ? SettleStatus::lost : SettleStatus::applied, {}};
    case StatementFate::refused:
      return {SettleStatus::lost, {}};
    default:
      return {SettleStatus::failed, store_error(place, outcome.error)};
  }
}

}  // namespace

/// One conditional write on its way, and how to recognise it afterwards.
struct CompletionWriter::Write {
  KeyedStatement statement;
  std::int64_t version = 0;  ///< that it leaves
  std::string nonce;         ///< empty: it removes the record
};

// The claims of this store are remembered. Of those that another one made, and hands its receipts on, the records tell.
void CompletionWriter::find_sent_times(const std::vector<const Receipt*>& receipts, Deadline deadline) {
  std::vector<std::string> unknown;
  for (const Receipt* receipt : receipts) {
    const auto& sent_at = sent_times_.emplace_back(lane_.sent_at_of(*receipt));
    if (!sent_at && has_fingerprint(*receipt)) {
      unknown.push_back(receipt->id);
    }
  }
  if (unknown.empty()) {
    return;
  }
  const auto records = parts_.runner.read(place_.table, unknown, deadline);
  for (std::size_t i = 0; i < receipts.size() && records; ++i) {
    const auto found = records->find(receipts[i]->id);
    if (!sent_times_[i] && found != records->end()) {
      const std::string sort_key = Candidate::of(found->second).sort_key;
      sent_times_[i] = may_be_of(*receipts[i], sort_key) ? sort_key : std::string();
    }
  }
}

CompletionWriter::Write CompletionWriter::write_of(const Completion& completion, std::optional<std::string> sent_at,
                                                   WallTime now, bool with_failure) {
  const Receipt& receipt = completion.receipt;
  const VersionMark version = VersionMark::number_of(receipt.version);
  if (completion.action == CompletionAction::remove) {
    return {build_.remove({receipt.id, version, type_, {}, std::move(sent_at)}, true), 0, {}};
  }
  const bool dead = completion.action == CompletionAction::dead_letter;
  RecordChange change = dead ? dead_letter_change(now) : put_off_change(visible_at(completion, now));
  if (const std::uint32_t count = receive_count_of(receipt);
      completion.action == CompletionAction::release && count > 0) {
    change.set.emplace_back(attribute::kReceiveCount, dynamo::AttributeValue::number(count - 1));
  }
  if (!dead && completion.suspect) {
    change.set.emplace_back(attribute::kSuspect, dynamo::AttributeValue::number(1));
  } else if (is_marked(receipt)) {
    change.removed = attribute::kSuspect;
  }
  if (with_failure && completion.action != CompletionAction::release && !completion.failure.empty()) {
    change.set.emplace_back(attribute::kFailure, encode_failure(completion.failure));
  }
  std::string nonce = parts_.nonces.next();
  auto statement = build_.update({receipt.id, version, type_, {}, std::move(sent_at)}, {nonce, now}, change);
  return {std::move(statement), version.next(), std::move(nonce)};
}

std::vector<SettleResult> CompletionWriter::perform(std::span<const Write> writes, Deadline deadline) {
  std::vector<KeyedStatement> statements;
  statements.reserve(writes.size());
  for (const auto& write : writes) {
    statements.push_back(write.statement);
  }
  const auto outcomes = parts_.runner.run(std::move(statements), Repetition::until_known, deadline);
  std::vector<SettleResult> results;
  results.reserve(writes.size());
  for (std::size_t i = 0; i < writes.size(); ++i) {
    results.push_back(result_of(outcomes[i], writes[i].nonce.empty(), place_));
  }
  recognise_own(writes, outcomes, results, deadline);
  return results;
}

void CompletionWriter::recognise_own(std::span<const Write> writes, const std::vector<StatementOutcome>& outcomes,
                                     std::vector<SettleResult>& results, Deadline deadline) {
  std::vector<std::size_t> doubtful;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const bool unknown = outcomes[i].fate == StatementFate::unknown;
    if (unknown || (outcomes[i].fate == StatementFate::refused && outcomes[i].repeated)) {
      doubtful.push_back(i);
      ids.push_back(writes[i].statement.id);
    }
  }
  if (doubtful.empty()) {
    return;
  }
  const auto records = parts_.runner.read(place_.table, ids, deadline);
  for (const std::size_t i : doubtful) {
    if (!records) {
      results[i] = {SettleStatus::failed,
                    Error(ErrorCode::unknown_outcome, store_error(place_, records.error()).message())};
      continue;
    }
    const auto found = records->find(writes[i].statement.id);
    const bool there = found != records->end();
    const bool removal = writes[i].nonce.empty();
    const std::int64_t version = there ? VersionMark::of(found->second).number : 0;
    const bool ours =
        removal ? !there : there && version == writes[i].version && nonce_of(found->second) == writes[i].nonce;
    if (ours) {
      results[i] = {SettleStatus::applied, {}};
    }
    // Otherwise a refusal stands: somebody else has the message now. And what is unknown stays unknown, because the
    // request may still be on its way.
  }
}

std::vector<SettleResult> CompletionWriter::settle(std::span<const Completion> completions, Deadline deadline) {
  const WallTime now = parts_.clock.wall_now();
  std::vector<Write> writes;
  writes.reserve(completions.size());
  std::vector<const Receipt*> receipts;
  for (const auto& completion : completions) {
    receipts.push_back(&completion.receipt);
  }
  find_sent_times(receipts, deadline);
  for (std::size_t i = 0; i < completions.size(); ++i) {
    writes.push_back(write_of(completions[i], sent_times_[i], now, true));
  }
  auto results = perform(writes, deadline);
  retry_without_failure(completions, now, results, deadline);
  for (std::size_t i = 0; i < completions.size(); ++i) {
    note_in_lane(completions[i], results[i], now);
  }
  return results;
}

// A record close to 400 KB has no room for the reason of its failure. The message matters more.
void CompletionWriter::retry_without_failure(std::span<const Completion> completions, WallTime now,
                                             std::vector<SettleResult>& results, Deadline deadline) {
  std::vector<std::size_t> places;
  std::vector<Write> writes;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (results[i].status == SettleStatus::failed && results[i].error.code() == ErrorCode::invalid &&
        !completions[i].failure.empty()) {
      places.push_back(i);
      writes.push_back(write_of(completions[i], sent_times_[i], now, false));
    }
  }
  if (writes.empty()) {
    return;
  }
  auto again = perform(writes, deadline);
  for (std::size_t k = 0; k < places.size(); ++k) {
    results[places[k]] = std::move(again[k]);
  }
}

void CompletionWriter::note_in_lane(const Completion& completion, const SettleResult& result, WallTime now) {
  const Receipt& receipt = completion.receipt;
  if (result.status == SettleStatus::lost) {
    lane_.forget_receipt(receipt);
    return;
  }
  if (result.status == SettleStatus::failed) {
    return;  // the lease stands until it runs out
  }
  if (completion.action == CompletionAction::remove) {
    lane_.removed(receipt.id, parts_.clock.steady_now());
  } else if (completion.action == CompletionAction::dead_letter) {
    lane_.forget(receipt.id);
  } else {
    lane_.put_off(
        receipt.id, VersionMark::number_of(receipt.version).next(), visible_at(completion, now),
        {.attempt_given_back = completion.action == CompletionAction::release, .suspect = completion.suspect});
  }
}

std::vector<ExtendResult> CompletionWriter::extend(std::span<const Receipt> receipts, Duration visibility,
                                                   Deadline deadline) {
  const Moment now = parts_.now();
  const WallTime invisible_until = later(now.wall, visibility);
  std::vector<Write> writes;
  writes.reserve(receipts.size());
  std::vector<const Receipt*> all;
  for (const auto& receipt : receipts) {
    all.push_back(&receipt);
  }
  find_sent_times(all, deadline);
  for (const auto& receipt : receipts) {
    const VersionMark version = VersionMark::number_of(receipt.version);
    std::string nonce = parts_.nonces.next();
    auto statement = build_.update({receipt.id, version, type_, {}, sent_times_[writes.size()]}, {nonce, now.wall},
                                   extend_change(invisible_until));
    writes.push_back({std::move(statement), version.next(), std::move(nonce)});
  }
  auto performed = perform(writes, deadline);
  std::vector<ExtendResult> results;
  results.reserve(receipts.size());
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    ExtendResult& result = results.emplace_back();
    result.status = performed[i].status;
    result.error = std::move(performed[i].error);
    if (result.status == SettleStatus::applied) {
      result.receipt = {receipts[i].id, writes[i].version, receipts[i].locator};
      result.leased_until = until(now.steady, visibility);
      lane_.extended(receipts[i].id, writes[i].version, invisible_until);
    } else if (result.status == SettleStatus::lost) {
      lane_.forget_receipt(receipts[i]);
    }
  }
  return results;
}

}  // namespace sluice::queue::dynamomq
