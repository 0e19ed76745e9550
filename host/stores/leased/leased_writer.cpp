#include "host/stores/leased/leased_writer.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/guard.hpp"
#include "host/queue/message.hpp"
#include "host/stores/leased/leased_transactions.hpp"
#include "host/stores/leased/leased_writes.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {

using dynamo::AttributeValue;
using table::in_doubt;
using table::RecordChange;
using table::Repetition;
using table::StatementFate;
using table::StatementOutcome;

namespace {

// What became of a write, by the record as it stands; null: there is none.
void judge(const std::string& nonce, std::int64_t before, const dynamo::Item* record, StatementOutcome& outcome) {
  const bool removal = nonce.empty();
  if (record == nullptr) {
    outcome.fate = removal ? StatementFate::done : StatementFate::refused;
  } else if (!removal && Candidate::of(*record).nonce == nonce) {
    outcome.fate = StatementFate::done;
    outcome.item = *record;
  } else if (Candidate::of(*record).version != before) {
    outcome.fate = StatementFate::refused;
  }
  // Otherwise what is unknown stays so: it may still arrive.
}

}  // namespace

Held Held::of(const table::FoundRecord& found) {
  const Candidate record = Candidate::of(found.item);
  return {.place = record.place,
          .version = record.version,
          .receive_count = record.receive_count,
          .counted = record.received,
          .marked = record.suspect,
          .aliased = found.alias && Place::of(*found.alias) == record.place,
          .held_group = record.hold ? record.group : std::string()};
}

/// One conditional write on its way.
struct LeasedWriter::Write {
  std::size_t index = 0;  ///< of the completion or receipt
  const Receipt* receipt = nullptr;
  table::RecordWrite record;  ///< until it is performed
  Place place;
  std::string nonce;  ///< that it leaves; a removal leaves none
  std::int64_t before = 0;
  std::optional<CompletionAction> action;  ///< nothing: it prolongs the lease
  StatementOutcome outcome;
};

bool LeasedWriter::is_plain(const Completion& completion) const {
  return !completion.effects && (completion.action != CompletionAction::dead_letter || half_ == Half::dlq);
}

LeasedWriter::Write LeasedWriter::update(const Receipt& receipt, const Held& held, std::int64_t version, WallTime now,
                                         RecordChange change) {
  Write write;
  write.receipt = &receipt;
  write.place = held.place;
  write.nonce = parts_.nonces.next();
  write.before = version;
  write.record = update_message(place_.table, {held.place, version}, write.nonce, now, std::move(change));
  return write;
}

void WriterState::remember(const Receipt& receipt, core::StateChange& change) const {
  if (change.failure) {
    change.failure->earlier = failures.earlier(receipt.id);
  }
}

LeasedWriter::Write LeasedWriter::end_write(const Completion& completion, const Held& held, std::int64_t version,
                                            WallTime now, bool with_failure) {
  if (completion.action == CompletionAction::remove) {
    Write write;
    write.receipt = &completion.receipt;
    write.place = held.place;
    write.before = version;
    write.action = completion.action;
    write.record = remove_message(place_.table, {held.place, version});
    return write;
  }
  core::StateChange change = end_of(completion, held, now);
  state_.remember(completion.receipt, change);
  if (!with_failure) {
    change.failure.reset();
  }
  Write write = update(completion.receipt, held, version, now, attributes_of(change, held.marked));
  write.action = completion.action;
  return write;
}

core::StateChange end_of(const Completion& completion, const Held& held, WallTime now) {
  const std::uint32_t attempt = held.receive_count + (held.counted ? 0 : 1);
  core::StateChange change = core::end(completion, attempt, now);
  change.receives = change.receives.value_or(attempt);
  if (*change.receives == held.receive_count) {
    change.receives.reset();
  }
  return change;
}

void LeasedWriter::perform(std::span<Write> writes, Deadline deadline) {
  std::vector<table::RecordWrite> records;
  records.reserve(writes.size());
  for (Write& write : writes) {
    records.push_back(std::move(write.record));
  }
  auto made = parts_.runner.run(std::move(records), Repetition::until_known, deadline);
  std::set<Place> doubtful;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    StatementOutcome& outcome = writes[i].outcome = std::move(made[i]);
    // Nothing to remove, and no try of ours before that could have: it was somebody else.
    const bool nothing = outcome.fate == StatementFate::done && outcome.item.empty() && !outcome.repeated;
    if (nothing && writes[i].nonce.empty()) {
      outcome.fate = StatementFate::refused;
    }
    if (in_doubt(outcome)) {
      doubtful.insert(writes[i].place);
    }
  }
  if (doubtful.empty()) {
    return;
  }
  const auto records_now = read_places(parts_.client, place_, doubtful, deadline);
  for (Write& write : writes) {
    if (!in_doubt(write.outcome)) {
      continue;
    }
    if (records_now) {
      const auto found = records_now->find(write.place);
      judge(write.nonce, write.before, found == records_now->end() ? nullptr : &found->second, write.outcome);
    } else if (write.outcome.fate == StatementFate::refused) {
      write.outcome.fate = StatementFate::unknown;
      write.outcome.error = records_now.error();
    }
  }
}

// Looks into refusals of what earlier calls have tried to write with an unknown outcome.
void LeasedWriter::build_upon_own(std::vector<Write>& writes, const Rewrite& rewrite, Deadline deadline) {
  std::set<Place> places;
  std::vector<std::pair<Write*, std::vector<table::DoubtfulWrite>>> in_question;
  for (Write& write : writes) {
    if (write.outcome.fate == StatementFate::refused) {
      if (auto doubts = state_.doubts.about(*write.receipt); !doubts.empty()) {
        places.insert(write.place);
        in_question.emplace_back(&write, std::move(doubts));
      }
    }
  }
  if (places.empty()) {
    return;
  }
  const auto records = read_places(parts_.client, place_, places, deadline);
  std::vector<Write> again;
  std::vector<Write*> instead_of;
  for (auto& [write, doubts] : in_question) {
    if (!records) {
      write->outcome.fate = StatementFate::unknown;
      write->outcome.error = records.error();
      continue;
    }
    const auto found = records->find(write->place);
    const bool there = found != records->end();
    const std::string nonce = there ? Candidate::of(found->second).nonce : std::string();
    const auto own = std::find_if(doubts.begin(), doubts.end(), [&](const table::DoubtfulWrite& doubt) {
      return there ? doubt.nonce == nonce : doubt.action == CompletionAction::remove;
    });
    if (own == doubts.end()) {
      continue;
    }
    if (own->action) {
      write->outcome.fate = own->action == write->action ? StatementFate::done : StatementFate::refused;
    } else {
      again.push_back(rewrite(*write, Candidate::of(found->second).version));
      instead_of.push_back(write);
    }
  }
  perform(again, deadline);
  for (std::size_t k = 0; k < again.size(); ++k) {
    again[k].index = instead_of[k]->index;
    *instead_of[k] = std::move(again[k]);
  }
}

void LeasedWriter::commit(std::vector<Write>& writes, const Rewrite& rewrite, Deadline deadline) {
  perform(writes, deadline);
  if (SLUICE_GUARD(nonce_across_extend_calls)) {
    build_upon_own(writes, rewrite, deadline);
  }
  for (const Write& write : writes) {
    if (write.outcome.fate == StatementFate::unknown) {
      state_.doubts.remember(*write.receipt, {write.nonce, write.action});
    } else if (write.outcome.fate != StatementFate::failed) {
      state_.doubts.clear(*write.receipt);
    }
  }
}

SettleResult LeasedWriter::result_of(const StatementOutcome& outcome) const {
  switch (outcome.fate) {
    case StatementFate::done:
      return {SettleStatus::applied, {}};
    case StatementFate::refused:
      return {SettleStatus::lost, {}};
    case StatementFate::unknown:
      return {SettleStatus::failed, Error(ErrorCode::unknown_outcome, store_error(place_, outcome.error).message())};
    case StatementFate::failed:
      break;
  }
  return {SettleStatus::failed, store_error(place_, outcome.error)};
}

std::vector<SettleResult> LeasedWriter::settle(std::span<const Completion> completions,
                                               std::span<const std::optional<Held>> held, Deadline deadline) {
  std::vector<std::optional<SettleResult>> results(completions.size());
  std::vector<std::optional<Held>> places(held.begin(), held.end());
  std::vector<const Receipt*> receipts;
  receipts.reserve(completions.size());
  for (const Completion& completion : completions) {
    receipts.push_back(&completion.receipt);
  }
  look_up(receipts, places, results, deadline);
  settle_plainly(completions, places, results, deadline);
  std::vector<LeasedTransactions::Wanted> wanted;
  std::vector<std::size_t> indexes;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (!results[i]) {
      wanted.push_back({&completions[i], &*places[i]});
      indexes.push_back(i);
    }
  }
  if (!wanted.empty()) {
    auto made = LeasedTransactions(parts_, place_, half_, state_).settle(wanted, deadline);
    for (std::size_t k = 0; k < indexes.size(); ++k) {
      results[indexes[k]] = std::move(made[k]);
    }
  }
  std::vector<SettleResult> known;
  known.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    known.push_back(std::move(*results[i]));
    if (known.back().status == SettleStatus::applied || known.back().status == SettleStatus::lost) {
      state_.failures.forget(completions[i].receipt.id);
    }
  }
  return known;
}

void LeasedWriter::settle_plainly(std::span<const Completion> completions, std::span<const std::optional<Held>> held,
                                  std::vector<std::optional<SettleResult>>& results, Deadline deadline) {
  const WallTime now = parts_.clock.wall_now();
  std::vector<Write> writes;
  writes.reserve(completions.size());
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (!results[i] && is_plain(completions[i])) {
      writes.push_back(end_write(completions[i], *held[i], completions[i].receipt.version, now, true));
      writes.back().index = i;
    }
  }
  if (writes.empty()) {
    return;
  }
  bool with_failure = true;
  const Rewrite rewrite = [&](const Write& before, std::int64_t version) {
    return end_write(completions[before.index], *held[before.index], version, now, with_failure);
  };
  commit(writes, rewrite, deadline);
  // A record close to 400 KB has no room for the reason of its failure. The message matters more.
  with_failure = false;
  std::vector<Write> again;
  for (const Write& write : writes) {
    const bool invalid = write.outcome.fate == StatementFate::failed &&
                         write.outcome.error.kind == dynamo::ErrorKind::validation &&
                         !completions[write.index].failure.empty();
    if (invalid) {
      again.push_back(rewrite(write, write.before));
      again.back().index = write.index;
    } else {
      results[write.index] = result_of(write.outcome);
    }
  }
  if (!again.empty()) {
    commit(again, rewrite, deadline);
    for (const Write& write : again) {
      results[write.index] = result_of(write.outcome);
    }
  }
  drop_companions(completions, held, results, deadline);
}

std::vector<ExtendResult> LeasedWriter::extend(std::span<const Receipt> receipts, std::span<std::optional<Held>> held,
                                               Duration visibility, Deadline deadline) {
  std::vector<ExtendResult> results(receipts.size());
  if (const auto sure = parts_.clock.be_sure(place_, visibility / 2, deadline); !sure) {
    for (ExtendResult& result : results) {
      result = {.status = SettleStatus::failed, .receipt = {}, .leased_until = {}, .error = sure.error()};
    }
    return results;
  }
  const table::Moment now = parts_.now();
  const WallTime until = later(now.wall, visibility);
  std::vector<const Receipt*> all;
  for (const Receipt& receipt : receipts) {
    all.push_back(&receipt);
  }
  std::vector<std::optional<SettleResult>> known(receipts.size());
  look_up(all, held, known, deadline);
  std::vector<Write> writes;
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (known[i]) {
      results[i].status = known[i]->status;
      results[i].error = std::move(known[i]->error);
      continue;
    }
    writes.push_back(
        update(receipts[i], *held[i], receipts[i].version, now.wall, attributes_of(core::extension(until), false)));
    writes.back().index = i;
  }
  commit(
      writes,
      [&](const Write& before, std::int64_t version) {
        Write write = update(*before.receipt, *held[before.index], version, now.wall,
                             attributes_of(core::extension(until), false));
        write.index = before.index;
        return write;
      },
      deadline);
  for (const Write& write : writes) {
    SettleResult settled = result_of(write.outcome);
    ExtendResult& result = results[write.index];
    result.status = settled.status;
    result.error = std::move(settled.error);
    if (result.status == SettleStatus::applied) {
      result.receipt = *write.receipt;
      result.receipt.version = write.before + 1;
      result.leased_until = table::until(now.steady, visibility);
      held[write.index]->version = result.receipt.version;
    }
  }
  return results;
}

}  // namespace sluice::queue::leased
