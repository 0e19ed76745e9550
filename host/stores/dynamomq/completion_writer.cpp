#include "host/stores/dynamomq/completion_writer.hpp"

#include <algorithm>

#include "base/guard.hpp"
#include "host/queue/message.hpp"
#include "host/stores/dynamomq/record_changes.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/transaction_writer.hpp"

namespace sluice::queue::dynamomq {
/// One conditional write on its way.
struct CompletionWriter::Write {
  const Receipt* receipt = nullptr;
  table::RecordWrite record;
  WriteTrace trace;
  std::int64_t version = 0;                  ///< that it leaves
  std::optional<WallTime> hidden_until{};    ///< where it puts the message back
  std::optional<CompletionAction> action;    ///< nothing: it prolongs the lease
  std::optional<dynamo::Error> hindered{};   ///< why it cannot be made
  const Completion* with_effects = nullptr;  ///< it is one action of a transaction
};

// The claims of this store are remembered. Of those that another one made, and hands its receipts on, the records tell.
void CompletionWriter::find_sent_times(const std::vector<const Receipt*>& receipts, Deadline deadline) {
  std::vector<std::string> unknown;
  unread_.resize(receipts.size());
  for (const Receipt* receipt : receipts) {
    const auto& sent_at = sent_times_.emplace_back(state_.lane.sent_at_of(*receipt));
    if (!sent_at && has_fingerprint(*receipt)) {
      unknown.push_back(receipt->id);
    }
  }
  if (unknown.empty()) {
    return;
  }
  const auto records = parts_.runner.read(place_.table, attribute::kId, unknown, deadline);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (sent_times_[i] || !has_fingerprint(*receipts[i])) {
      continue;
    }
    if (!records && SLUICE_GUARD(settle_fence_sent_at)) {
      unread_[i] = records.error();  // without the time, a message that was sent again could be taken for this one
    } else if (!records) {
      continue;
    } else if (const auto found = records->find(receipts[i]->id); found != records->end()) {
      const std::string sort_key = Candidate::of(found->second).sort_key;
      sent_times_[i] = may_be_of(*receipts[i], sort_key) ? sort_key : std::string();
    }
  }
}

CompletionWriter::Write CompletionWriter::update(const Receipt& receipt, std::size_t place, std::int64_t version,
                                                 WallTime now, const table::RecordChange& change) {
  const table::VersionMark before = table::VersionMark::number_of(version);
  std::string nonce = parts_.nonces.next();
  Write write;
  write.receipt = &receipt;
  write.record = build_.update({receipt.id, before, half_, {}, sent_times_[place]}, {nonce, now}, change);
  write.trace = {WriteTrace::Kind::update, receipt.id, std::move(nonce), version};
  write.version = before.next();
  write.hindered = unread_[place];
  return write;
}

CompletionWriter::Write CompletionWriter::write_of(const Completion& completion, std::size_t place,
                                                   std::int64_t version, WallTime now, bool with_failure) {
  const Receipt& receipt = completion.receipt;
  if (completion.action == CompletionAction::remove) {
    Write write;
    write.receipt = &receipt;
    write.record =
        build_.remove({receipt.id, table::VersionMark::number_of(version), half_, {}, sent_times_[place]}, true);
    write.trace = {WriteTrace::Kind::remove, receipt.id, {}, version};
    write.action = completion.action;
    write.hindered = unread_[place];
    return write;
  }
  core::StateChange change = core::end(completion, receive_count_of(receipt), now);
  if (!with_failure) {
    change.failure.reset();
  } else if (change.failure) {
    change.failure->earlier = state_.failures.earlier(receipt.id);
  }
  Write write = update(receipt, place, version, now, attributes_of(change, {.suspect = is_marked(receipt)}));
  write.hidden_until = change.hidden_until.value_or(std::nullopt);
  write.action = completion.action;
  return write;
}

std::vector<table::StatementOutcome> CompletionWriter::perform(std::span<const Write> writes, Deadline deadline) {
  std::vector<table::RecordWrite> records;
  std::vector<WriteTrace> traces;
  bool transactions = false;
  for (const Write& write : writes) {
    transactions = transactions || write.with_effects != nullptr;
    if (!write.hindered && write.with_effects == nullptr) {
      records.push_back(write.record);
      traces.push_back(write.trace);
    }
  }
  auto made = parts_.runner.run(std::move(records), table::Repetition::until_known, deadline);
  for (std::size_t k = 0; k < made.size(); ++k) {
    // A DELETE of an absent record succeeds without an item. After a repeat it was our own first try that removed it.
    const bool nothing = made[k].fate == table::StatementFate::done && made[k].item.empty() && !made[k].repeated;
    if (nothing && traces[k].kind == WriteTrace::Kind::remove) {
      made[k].fate = table::StatementFate::refused;
    }
  }
  recovery_.recover(traces, made, deadline);
  std::vector<table::StatementOutcome> outcomes(writes.size());
  for (std::size_t i = 0, k = 0; i < writes.size(); ++i) {
    if (writes[i].hindered) {
      outcomes[i].error = *writes[i].hindered;
    } else if (writes[i].with_effects == nullptr) {
      outcomes[i] = std::move(made[k++]);
    }
  }
  if (transactions) {
    perform_transactions(writes, outcomes, deadline);
  }
  return outcomes;
}

void CompletionWriter::perform_transactions(std::span<const Write> writes,
                                            std::vector<table::StatementOutcome>& outcomes, Deadline deadline) {
  std::vector<table::TransactionWriter::Wanted> wanted;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (writes[i].with_effects != nullptr && !writes[i].hindered) {
      wanted.push_back({writes[i].with_effects, {action_of(writes[i].record)}});
      places.push_back(i);
    }
  }
  auto made = table::TransactionWriter(parts_, place_, state_.transactions, parts_.layouts).write(wanted, deadline);
  for (std::size_t k = 0; k < made.size(); ++k) {
    const std::size_t i = places[k];
    outcomes[i] = std::move(made[k].outcome);
    refusals_.erase(writes[i].receipt);
    if (made[k].never_applied) {
      never_applied_.insert(writes[i].receipt);
    }
    if (made[k].refused) {
      refusals_.emplace(writes[i].receipt, std::move(*made[k].refused));
    }
  }
}

// Looks into refusals of what earlier calls have tried to write with an unknown outcome.
void CompletionWriter::build_upon_own(std::vector<Write>& writes, std::vector<table::StatementOutcome>& outcomes,
                                      const Rewrite& rewrite, Deadline deadline) {
  std::vector<std::string> ids;
  std::vector<std::vector<table::DoubtfulWrite>> doubts(writes.size());
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (outcomes[i].fate == table::StatementFate::refused && never_applied_.count(writes[i].receipt) == 0) {
      doubts[i] = state_.doubts.about(*writes[i].receipt);
    }
    if (!doubts[i].empty()) {
      ids.push_back(writes[i].receipt->id);
    }
  }
  if (ids.empty()) {
    return;
  }
  const auto records = parts_.runner.read(place_.table, attribute::kId, ids, deadline);
  std::vector<std::size_t> places;
  std::vector<Write> again;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (doubts[i].empty()) {
      continue;
    }
    if (!records) {
      outcomes[i].fate = table::StatementFate::unknown;
      outcomes[i].error = records.error();
      continue;
    }
    const auto found = records->find(writes[i].receipt->id);
    const bool there = found != records->end();
    const std::string nonce = there ? nonce_of(found->second) : std::string();
    const auto own = std::find_if(doubts[i].begin(), doubts[i].end(), [&](const table::DoubtfulWrite& doubt) {
      return there ? doubt.nonce == nonce : doubt.action == CompletionAction::remove;
    });
    if (own == doubts[i].end()) {
      continue;
    }
    if (own->action) {
      outcomes[i].fate = own->action == writes[i].action ? table::StatementFate::done : table::StatementFate::refused;
    } else {
      writes[i] = rewrite(i, version_of(found->second).number);
      again.push_back(writes[i]);
      places.push_back(i);
    }
  }
  auto results = perform(again, deadline);
  for (std::size_t k = 0; k < places.size(); ++k) {
    outcomes[places[k]] = std::move(results[k]);
  }
}

std::vector<table::StatementOutcome> CompletionWriter::commit(std::vector<Write>& writes, const Rewrite& rewrite,
                                                              Deadline deadline) {
  auto outcomes = perform(writes, deadline);
  if (SLUICE_GUARD(nonce_across_extend_calls)) {
    build_upon_own(writes, outcomes, rewrite, deadline);
  }
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (outcomes[i].fate == table::StatementFate::unknown) {
      state_.doubts.remember(*writes[i].receipt, {writes[i].trace.nonce, writes[i].action});
    } else if (outcomes[i].fate != table::StatementFate::failed) {
      state_.doubts.clear(*writes[i].receipt);
    }
  }
  return outcomes;
}

SettleResult CompletionWriter::result_of(const Completion& completion, const table::StatementOutcome& outcome) const {
  const auto refused = refusals_.find(&completion.receipt);
  return refused == refusals_.end() ? result_of(outcome) : refused->second;
}

SettleResult CompletionWriter::result_of(const table::StatementOutcome& outcome) const {
  switch (outcome.fate) {
    case table::StatementFate::done:
      return {SettleStatus::applied, {}};
    case table::StatementFate::refused:
      return {SettleStatus::lost, {}};
    default:
      return {SettleStatus::failed, recovery_.error_of(outcome)};
  }
}

std::vector<SettleResult> CompletionWriter::settle(std::span<const Completion> completions, Deadline deadline) {
  const WallTime now = parts_.clock.wall_now();
  std::vector<const Receipt*> receipts;
  for (const auto& completion : completions) {
    receipts.push_back(&completion.receipt);
  }
  find_sent_times(receipts, deadline);
  const auto write = [&](std::size_t i, std::int64_t version) {
    Write made = write_of(completions[i], i, version, now, true);
    made.with_effects = completions[i].effects ? &completions[i] : nullptr;
    return made;
  };
  std::vector<Write> writes;
  writes.reserve(completions.size());
  for (std::size_t i = 0; i < completions.size(); ++i) {
    writes.push_back(write(i, completions[i].receipt.version));
  }
  auto outcomes = commit(writes, write, deadline);
  settle_without_failure(completions, now, writes, outcomes, deadline);
  std::vector<SettleResult> results;
  results.reserve(completions.size());
  for (std::size_t i = 0; i < completions.size(); ++i) {
    results.push_back(result_of(completions[i], outcomes[i]));
    note_in_lane(completions[i], writes[i], results[i]);
  }
  return results;
}

// A record close to 400 KB has no room for the reason of its failure. The message matters more.
void CompletionWriter::settle_without_failure(std::span<const Completion> completions, WallTime now,
                                              std::vector<Write>& writes,
                                              std::vector<table::StatementOutcome>& outcomes, Deadline deadline) {
  std::vector<std::size_t> places;
  std::vector<Write> again;
  const auto write = [&](std::size_t k, std::int64_t version) {
    Write made = write_of(completions[places[k]], places[k], version, now, false);
    made.with_effects = completions[places[k]].effects ? &completions[places[k]] : nullptr;
    return made;
  };
  for (std::size_t i = 0; i < completions.size(); ++i) {
    const bool invalid = outcomes[i].fate == table::StatementFate::failed &&
                         recovery_.error_of(outcomes[i]).code() == ErrorCode::invalid;
    if (invalid && !completions[i].failure.empty()) {
      places.push_back(i);
      again.push_back(write(places.size() - 1, *writes[i].trace.before));
    }
  }
  if (places.empty()) {
    return;
  }
  auto results = commit(again, write, deadline);
  for (std::size_t k = 0; k < places.size(); ++k) {
    writes[places[k]] = std::move(again[k]);
    outcomes[places[k]] = std::move(results[k]);
  }
}

void CompletionWriter::note_in_lane(const Completion& completion, const Write& write, const SettleResult& result) {
  const Receipt& receipt = completion.receipt;
  if (result.status == SettleStatus::lost) {
    state_.lane.forget_receipt(receipt);
    state_.failures.forget(receipt.id);
    return;
  }
  if (result.status == SettleStatus::failed || result.status == SettleStatus::refused) {
    return;  // the lease stands until it runs out
  }
  state_.failures.forget(receipt.id);
  if (completion.action == CompletionAction::remove) {
    state_.lane.removed(receipt.id, parts_.clock.steady_now());
  } else if (completion.action == CompletionAction::dead_letter) {
    state_.lane.forget(receipt.id);
  } else {
    state_.lane.put_off(
        receipt.id, write.version, write.hidden_until,
        {.attempt_given_back = completion.action == CompletionAction::release, .suspect = completion.suspect});
  }
}

std::vector<ExtendResult> CompletionWriter::extend(std::span<const Receipt> receipts, Duration visibility,
                                                   Deadline deadline) {
  std::vector<ExtendResult> results(receipts.size());
  if (const auto sure = parts_.clock.be_sure(place_, visibility / 2, deadline); !sure) {
    for (ExtendResult& result : results) {
      result = {.status = SettleStatus::failed, .receipt = {}, .leased_until = {}, .error = sure.error()};
    }
    return results;
  }
  const table::Moment now = parts_.now();
  const WallTime invisible_until = later(now.wall, visibility);
  std::vector<const Receipt*> all;
  for (const auto& receipt : receipts) {
    all.push_back(&receipt);
  }
  find_sent_times(all, deadline);
  const auto write = [&](std::size_t i, std::int64_t version) {
    return update(receipts[i], i, version, now.wall, attributes_of(core::extension(invisible_until)));
  };
  std::vector<Write> writes;
  writes.reserve(receipts.size());
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    writes.push_back(write(i, receipts[i].version));
  }
  const auto outcomes = commit(writes, write, deadline);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    SettleResult settled = result_of(outcomes[i]);
    ExtendResult& result = results[i];
    result.status = settled.status;
    result.error = std::move(settled.error);
    if (result.status == SettleStatus::applied) {
      result.receipt = {receipts[i].id, writes[i].version, receipts[i].locator};
      result.leased_until = table::until(now.steady, visibility);
      state_.lane.extended(receipts[i].id, writes[i].version, invisible_until);
    } else if (result.status == SettleStatus::lost) {
      state_.lane.forget_receipt(receipts[i]);
    }
  }
  return results;
}

}  // namespace sluice::queue::dynamomq
