#include "host/stores/table/delivery_writer.hpp"

#include <algorithm>
#include <iterator>

#include "base/guard.hpp"
#include "base/ranges.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/core/writes.hpp"
#include "host/stores/table/record_layout.hpp"

namespace sluice::queue::table {
namespace {

/// The record with that key; null: there is none.
const dynamo::Item* record_of(const std::vector<dynamo::Item>& records, const dynamo::Item& key) {
  const auto has_key = [&key](const dynamo::Item& record) {
    return std::all_of(key.begin(), key.end(), [&record](const auto& attribute) {
      const auto* value = dynamo::attribute_of(record, attribute.first);
      return value != nullptr && *value == attribute.second;
    });
  };
  const auto found = std::find_if(records.begin(), records.end(), has_key);
  return found == records.end() ? nullptr : &*found;
}

/// The token of a transaction tells what became of it, and no look at the record does.
bool doubtful(const DeliveryWrite& write) { return write.in_transaction == nullptr && in_doubt(write.outcome); }

/// Tells what became of it by what its record says; no trace: there is no record.
void tell(DeliveryWrite& write, const std::optional<core::RecordTrace>& found) {
  StatementFate& fate = write.outcome.fate;
  const auto found_out = core::fate_of({write.nonce, write.before(), fate == StatementFate::refused}, found);
  if (found_out == core::WriteFate::applied) {
    fate = StatementFate::done;
  } else if (found_out == core::WriteFate::refused) {
    fate = StatementFate::refused;
  }
}

/// The record of a lease at that version, the receipt's or a later one.
Expected at_version(const Expected& record, std::int64_t version) {
  Expected expected = record;
  expected.version = record.version.at(version);
  return expected;
}

/// The item would be longer than DynamoDB allows, which tells it like this.
bool does_not_fit(const StatementOutcome& outcome) {
  return outcome.fate == StatementFate::failed && outcome.error.kind == dynamo::ErrorKind::validation;
}

}  // namespace

std::vector<SettleResult> DeliveryWriter::settle(std::span<const Completion> completions, Deadline deadline) {
  leases_ = mapped(completions, [](const Completion& completion) { return Lease{.receipt = &completion.receipt}; });
  find(completions, deadline);
  const WallTime now = parts_.clock.wall_now();
  const auto write_of = [&](std::size_t i, std::int64_t version, bool with_failure) {
    return end(completions[i], i, version, now, with_failure);
  };
  return mapped(commit(write_of, deadline), [this](const DeliveryWrite& write) { return conclude(write); });
}

std::vector<ExtendResult> DeliveryWriter::extend(std::span<const Receipt> receipts, Duration visibility,
                                                 Deadline deadline) {
  if (const auto sure = parts_.clock.be_sure(place_, visibility / 2, deadline); !sure) {
    return {receipts.size(), ExtendResult{SettleStatus::failed, {}, {}, sure.error()}};
  }
  const Moment now = parts_.now();
  leases_ = mapped(receipts, [](const Receipt& receipt) { return Lease{.receipt = &receipt}; });
  find({}, deadline);
  const auto write_of = [&](std::size_t i, std::int64_t version, bool) {
    return update(leases_[i], version, now.wall, core::extension(later(now.wall, visibility)));
  };
  return mapped(commit(write_of, deadline), [&](const DeliveryWrite& write) {
    SettleResult settled = conclude(write);
    ExtendResult result{.status = settled.status, .error = std::move(settled.error)};
    if (result.status == SettleStatus::applied) {
      result.receipt = *write.receipt;
      result.receipt.version = write.decided ? write.receipt->version : write.version();
      result.leased_until = until(now.steady, visibility);
    }
    return result;
  });
}

DeliveryWrite DeliveryWriter::update(const Lease& lease, std::int64_t version, WallTime now,
                                     core::StateChange change) const {
  DeliveryWrite write;
  // A checkpoint leaves room for the writes that follow.
  write.nonce = change.checkpoint ? parts_.nonces.padded(names_.life_bytes) : parts_.nonces.next();
  write.record = update_of(names_, place_.table, at_version(lease.record, version), {write.nonce, now},
                           attributes_of(names_, change, {.marks = lease.state.marks != 0}));
  write.change = std::move(change);
  return write;
}

DeliveryWrite DeliveryWriter::end(const Completion& completion, std::size_t index, std::int64_t version, WallTime now,
                                  bool with_failure) const {
  const Lease& lease = leases_[index];
  core::StateChange change = core::end(completion, lease.state, now);
  if (!lease.counted && completion.action != CompletionAction::keep) {
    // The record counts one less. What it says already is not named.
    const std::uint32_t receives = change.receives.value_or(lease.state.receives);
    change.receives = receives + 1 == lease.state.receives ? std::nullopt : std::optional(receives);
  }
  if (!with_failure) {
    change.failure.reset();
  }
  DeliveryWrite write;
  if (change.removes || lease.moves) {
    write.record = removal_of(names_, place_.table, at_version(lease.record, version));
    write.change = std::move(change);
  } else {
    write = update(lease, version, now, std::move(change));
  }
  write.carries(completion);
  add_beside(index, completion, now, write);
  return write;
}

std::vector<DeliveryWrite> DeliveryWriter::commit(const Rewrite& write_of, Deadline deadline) {
  const Rewrite rewrite = [&](std::size_t i, std::int64_t version, bool with_failure) {
    DeliveryWrite write;
    write.decided = leases_[i].decided;
    if (!write.decided) {
      write = write_of(i, version, with_failure);
    }
    write.index = i;
    write.receipt = leases_[i].receipt;
    return write;
  };
  std::vector<DeliveryWrite> writes;
  writes.reserve(leases_.size());
  for (std::size_t i = 0; i < leases_.size(); ++i) {
    writes.push_back(rewrite(i, leases_[i].receipt->version, true));
  }
  make(writes, rewrite, true, deadline);
  // A record close to 400 KB has no room for the reason of its failure. The message matters more.
  std::vector<DeliveryWrite> again;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (writes[i].change.failure && does_not_fit(writes[i].outcome)) {
      again.push_back(rewrite(writes[i].index, writes[i].before(), false));
      places.push_back(i);
    }
  }
  if (!again.empty()) {
    make(again, rewrite, false, deadline);
    for (std::size_t k = 0; k < again.size(); ++k) {
      writes[places[k]] = std::move(again[k]);
    }
  }
  for (DeliveryWrite& write : writes) {
    if (write.keeps && does_not_fit(write.outcome)) {
      write.decided = {SettleStatus::refused, Error(ErrorCode::invalid,
                                                    "the checkpoint does not fit into the message's item, of which "
                                                    "DynamoDB holds 400 KB with the body: " +
                                                        write.outcome.error.message + "; store a shorter one")};
    }
  }
  return writes;
}

void DeliveryWriter::make(std::vector<DeliveryWrite>& writes, const Rewrite& rewrite, bool with_failure,
                          Deadline deadline) {
  perform(writes, deadline);
  look_into(writes, rewrite, with_failure, deadline);
  for (const DeliveryWrite& one : writes) {
    if (one.outcome.fate == StatementFate::unknown) {
      doubts_.remember(*one.receipt, {one.nonce, one.action});
    } else if (one.outcome.fate != StatementFate::failed) {
      doubts_.clear(*one.receipt);
    }
  }
}

void DeliveryWriter::perform(std::span<DeliveryWrite> writes, Deadline deadline) {
  std::vector<RecordWrite> records;
  records.reserve(writes.size());
  std::vector<DeliveryWrite*> in_transactions;
  for (DeliveryWrite& write : writes) {
    if (write.decided) {
      continue;
    }
    write.key_ = write.record.key();
    write.before_ = write.record.expected.version.number;
    if (write.in_transaction == nullptr) {
      records.push_back(std::move(write.record));
    } else {
      in_transactions.push_back(&write);
    }
  }
  auto made = parts_.runner.run(std::move(records), Repetition::until_known, deadline);
  std::size_t k = 0;
  for (DeliveryWrite& write : writes) {
    if (write.decided || write.in_transaction != nullptr) {
      continue;
    }
    write.outcome = std::move(made[k++]);
    // A removal of an absent record succeeds without an item. After a repeat it was our own first try that removed it.
    const bool nothing = write.outcome.item.empty() && !write.outcome.repeated;
    if (write.removes() && nothing && write.outcome.fate == StatementFate::done) {
      write.outcome.fate = StatementFate::refused;
    }
  }
  commit_transactions(layout_, transactions_, in_transactions, deadline);
}

void DeliveryWriter::look_into(std::span<DeliveryWrite> writes, const Rewrite& rewrite, bool with_failure,
                               Deadline deadline) {
  const auto earlier = [&](const DeliveryWrite& write) {
    const bool asks = rewrite && write.outcome.fate == StatementFate::refused && !write.never_applied;
    return asks && SLUICE_GUARD(nonce_across_extend_calls) ? doubts_.about(*write.receipt)
                                                           : std::vector<DoubtfulWrite>();
  };
  std::vector<DeliveryWrite*> in_question;
  std::vector<dynamo::Item> keys;
  for (DeliveryWrite& write : writes) {
    if (doubtful(write) || !earlier(write).empty()) {
      in_question.push_back(&write);
      keys.push_back(write.key_);
    }
  }
  if (keys.empty()) {
    return;
  }
  const auto records = read_items(parts_.client, place_.table, keys, deadline);
  std::vector<DeliveryWrite> again;
  std::vector<DeliveryWrite*> places;
  for (DeliveryWrite* write : in_question) {
    StatementOutcome& outcome = write->outcome;
    if (!records) {
      if (outcome.fate == StatementFate::refused) {
        outcome.fate = StatementFate::unknown;
        outcome.error = records.error();
      }
      continue;
    }
    const dynamo::Item* const record = record_of(*records, write->key_);
    const std::string nonce = record == nullptr ? std::string() : dynamo::text_of(*record, names_.nonce);
    const auto found =
        record == nullptr ? std::nullopt : std::optional(core::RecordTrace{nonce, layout_.version_of(*record).number});
    if (doubtful(*write)) {
      tell(*write, found);
    }
    const auto doubts = earlier(*write);
    const auto own = std::find_if(doubts.begin(), doubts.end(), [&](const DoubtfulWrite& doubt) {
      return doubt.nonce.empty() ? !found : found && doubt.nonce == found->nonce;
    });
    if (own == doubts.end()) {
      continue;
    }
    // A checkpoint has left the delivery where it was, for whatever comes of it now.
    const bool went_on = !own->action || (own->action == CompletionAction::keep && !write->keeps);
    if (!went_on) {
      outcome.fate = own->action == write->action ? StatementFate::done : StatementFate::refused;
    } else {
      again.push_back(rewrite(write->index, found->version, with_failure));
      places.push_back(write);
    }
  }
  perform(again, deadline);
  look_into(again, {}, with_failure, deadline);
  for (std::size_t k = 0; k < again.size(); ++k) {
    *places[k] = std::move(again[k]);
  }
}

SettleResult DeliveryWriter::conclude(const DeliveryWrite& write) {
  SettleResult result = result_of(write);
  written(write, result);
  return result;
}

SettleResult DeliveryWriter::result_of(const DeliveryWrite& write) const {
  if (write.decided) {
    return *write.decided;
  }
  switch (write.outcome.fate) {
    case StatementFate::done:
      return {.status = SettleStatus::applied, .version = write.version()};
    case StatementFate::refused:
      return {SettleStatus::lost, {}};
    case StatementFate::unknown:
      return {SettleStatus::failed,
              Error(ErrorCode::unknown_outcome, store_error(place_, write.outcome.error).message())};
    case StatementFate::failed:
      break;
  }
  return {SettleStatus::failed, store_error(place_, write.outcome.error)};
}

}  // namespace sluice::queue::table
