#include "host/stores/dynamomq/completion_writer.hpp"

#include "base/guard.hpp"
#include "host/queue/message.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {

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

table::DeliveryWrite CompletionWriter::update(const Receipt& receipt, std::size_t index, std::int64_t version,
                                              WallTime now, const table::RecordChange& change) {
  table::DeliveryWrite write;
  write.index = index;
  write.receipt = &receipt;
  write.nonce = parts_.nonces.next();
  write.record = build_.update({receipt.id, table::VersionMark::number_of(version), half_, {}, sent_times_[index]},
                               {write.nonce, now}, change);
  write.hindered = unread_[index];
  return write;
}

table::DeliveryWrite CompletionWriter::end(const Completion& completion, std::size_t index, std::int64_t version,
                                           WallTime now, bool with_failure) {
  const Receipt& receipt = completion.receipt;
  table::DeliveryWrite write;
  if (completion.action == CompletionAction::remove) {
    write.index = index;
    write.receipt = &receipt;
    write.record =
        build_.remove({receipt.id, table::VersionMark::number_of(version), half_, {}, sent_times_[index]}, true);
    write.hindered = unread_[index];
  } else {
    core::StateChange change = core::end(completion, receive_count_of(receipt), now);
    if (!with_failure) {
      change.failure.reset();
    } else if (change.failure) {
      change.failure->earlier = state_.failures.earlier(receipt.id);
    }
    write = update(receipt, index, version, now, attributes_of(change, {.suspect = is_marked(receipt)}));
    write.has_failure = change.failure.has_value();
  }
  write.action = completion.action;
  write.in_transaction = completion.effects ? &completion : nullptr;
  return write;
}

std::vector<SettleResult> CompletionWriter::settle(std::span<const Completion> completions, Deadline deadline) {
  const WallTime now = parts_.clock.wall_now();
  std::vector<const Receipt*> receipts;
  for (const auto& completion : completions) {
    receipts.push_back(&completion.receipt);
  }
  find_sent_times(receipts, deadline);
  const auto write = [&](std::size_t i, std::int64_t version, bool with_failure) {
    return end(completions[i], i, version, now, with_failure);
  };
  std::vector<table::DeliveryWrite> writes;
  writes.reserve(completions.size());
  for (std::size_t i = 0; i < completions.size(); ++i) {
    writes.push_back(write(i, completions[i].receipt.version, true));
  }
  writer_.commit(writes, write, deadline);
  std::vector<SettleResult> results;
  results.reserve(completions.size());
  for (std::size_t i = 0; i < completions.size(); ++i) {
    results.push_back(writer_.result_of(writes[i]));
    note_in_lane(completions[i], writes[i].version(), now, results[i].status);
  }
  return results;
}

void CompletionWriter::note_in_lane(const Completion& completion, std::int64_t version, WallTime now,
                                    SettleStatus status) {
  const Receipt& receipt = completion.receipt;
  if (status == SettleStatus::failed || status == SettleStatus::refused) {
    return;  // the lease stands until it runs out
  }
  state_.failures.forget(receipt.id);
  if (status == SettleStatus::lost) {
    state_.lane.forget_receipt(receipt);
  } else if (completion.action == CompletionAction::remove) {
    state_.lane.removed(receipt.id, parts_.clock.steady_now());
  } else if (completion.action == CompletionAction::dead_letter) {
    state_.lane.forget(receipt.id);
  } else {
    const core::StateChange change = core::end(completion, receive_count_of(receipt), now);
    state_.lane.put_off(
        receipt.id, version, change.hidden_until.value_or(std::nullopt),
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
  const auto write = [&](std::size_t i, std::int64_t version, bool) {
    return update(receipts[i], i, version, now.wall, attributes_of(core::extension(invisible_until)));
  };
  std::vector<table::DeliveryWrite> writes;
  writes.reserve(receipts.size());
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    writes.push_back(write(i, receipts[i].version, false));
  }
  writer_.commit(writes, write, deadline);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    SettleResult settled = writer_.result_of(writes[i]);
    ExtendResult& result = results[i];
    result.status = settled.status;
    result.error = std::move(settled.error);
    if (result.status == SettleStatus::applied) {
      result.receipt = {receipts[i].id, writes[i].version(), receipts[i].locator};
      result.leased_until = table::until(now.steady, visibility);
      state_.lane.extended(receipts[i].id, writes[i].version(), invisible_until);
    } else if (result.status == SettleStatus::lost) {
      state_.lane.forget_receipt(receipts[i]);
    }
  }
  return results;
}

}  // namespace sluice::queue::dynamomq
