#include "host/queue/joined_source.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/assert.hpp"
#include "host/queue/weighted_turns.hpp"

namespace sluice::queue {

namespace {

SourceTraits common(const std::vector<JoinedSource::Part>& parts) {
  SourceTraits all{.groups = true, .sequence = true, .priorities = true, .transactions = true, .checkpoints = true};
  for (const JoinedSource::Part& part : parts) {
    const SourceTraits& one = part.source->traits();
    all.groups = all.groups && one.groups;
    all.sequence = all.sequence && one.sequence;
    all.priorities = all.priorities && one.priorities;
    all.transactions = all.transactions && one.transactions;
    all.checkpoints = all.checkpoints && one.checkpoints;
  }
  return all;
}

// More are not shared out one by one: the share of each is then its weight's.
constexpr std::size_t kDealt = 1'000;

}  // namespace

JoinedSource::JoinedSource(std::vector<Part> parts)
    : parts_(std::move(parts)), traits_(common(parts_)), credits_(parts_.size()) {
  SLUICE_ASSERT(!parts_.empty());
}

void JoinedSource::start(SourceEvents events) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    SourceEvents own{.on_ready = events.on_ready, .lost = {}, .by_call = events.by_call};
    if (events.lost) {
      own.lost = [lost = events.lost, i](std::span<const Receipt> receipts) {
        std::vector<Receipt> ours(receipts.begin(), receipts.end());
        for (Receipt& receipt : ours) {
          receipt.part = static_cast<std::uint16_t>(i);
        }
        lost(ours);
      };
    }
    parts_[i].source->start(std::move(own));
  }
}

void JoinedSource::stop() {
  for (const Part& part : parts_) {
    part.source->stop();
  }
}

JoinedSource::Shares JoinedSource::share_out(std::size_t max) {
  Shares shares{.of = std::vector<std::size_t>(parts_.size()), .first = 0};
  const std::size_t dealt = std::min(max, kDealt);
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < dealt; ++i) {
    const auto weight = [this](std::size_t part) { return std::int64_t{parts_[part].weight}; };
    const std::size_t next = next_turn(credits_, weight, [](std::size_t) { return true; }).value_or(0);
    ++shares.of[next];
    shares.first = i == 0 ? next : shares.first;
  }
  const auto add = [](std::size_t sum, const Part& part) { return sum + part.weight; };
  const std::size_t total = std::accumulate(parts_.begin(), parts_.end(), std::size_t{0}, add);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    shares.of[part] += (max - dealt) * parts_[part].weight / total;
  }
  return shares;
}

// One claim over all parts.
class JoinedSource::Claiming {
 public:
  Claiming(const std::vector<Part>& parts, const ClaimRequest& request, Deadline deadline)
      : parts_(parts), request_(request), deadline_(deadline), empty_(parts.size()) {}

  /// False: this part has no more, or the claim is full.
  bool claim(std::size_t part, std::size_t share) {
    const std::size_t room = request_.max - found_.deliveries.size();
    share = std::min(share, room);
    if (share == 0 || alone_ || bytes_ >= request_.bytes || empty_[part]) {
      return false;
    }
    ClaimRequest own = request_;
    own.max = share;
    own.bytes = request_.bytes - bytes_;
    own.visibility = parts_[part].visibility;
    own.rules.max_in_flight = parts_[part].max_in_flight;
    // A suspect is alone in its claim.
    own.suspects = request_.suspects && found_.deliveries.empty();
    auto claimed = parts_[part].source->claim(own, deadline_);
    if (!claimed) {
      // That one of them is full is no failure, and hides none.
      if (!error_ || error_->code() == ErrorCode::over_limit) {
        error_ = claimed.error();
      }
      empty_[part] = true;
      return false;
    }
    empty_[part] = claimed->deliveries.size() < share;
    if (claimed->next_due) {
      found_.next_due = std::min(*claimed->next_due, found_.next_due.value_or(*claimed->next_due));
    }
    for (Delivery& delivery : claimed->deliveries) {
      delivery.receipt.part = static_cast<std::uint16_t>(part);
      bytes_ += payload_bytes(delivery.message);
      alone_ = alone_ || delivery.suspect;
      found_.deliveries.push_back(std::move(delivery));
    }
    return !empty_[part];
  }

  Result<Claimed> finish() {
    if (found_.deliveries.empty() && error_) {
      return *error_;
    }
    return std::move(found_);
  }

 private:
  const std::vector<Part>& parts_;
  const ClaimRequest& request_;
  const Deadline deadline_;
  std::vector<bool> empty_;
  Claimed found_;
  std::optional<Error> error_;
  std::size_t bytes_ = 0;
  bool alone_ = false;  ///< the only delivery is a suspect
};

Result<Claimed> JoinedSource::claim(const ClaimRequest& request, Deadline deadline) {
  const Shares shares = share_out(request.max);
  Claiming claiming(parts_, request, deadline);
  const auto part_at = [&](std::size_t i) { return (shares.first + i) % parts_.size(); };
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    claiming.claim(part_at(i), shares.of[part_at(i)]);
  }
  // What is left over goes to whoever has more, those without a share this time among them.
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    claiming.claim(part_at(i), request.max);
  }
  return claiming.finish();
}

/// Has each part do its share of the items; each item's result stands in its place.
template <typename Item, typename Outcome, typename PartOf, typename Work>
static std::vector<Outcome> by_part(std::size_t parts, std::span<const Item> items, std::vector<Outcome> results,
                                    PartOf part_of, Work work) {
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<Item> own;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (part_of(items[i]) == part) {
        own.push_back(items[i]);
        places.push_back(i);
      }
    }
    std::vector<Outcome> done = own.empty() ? std::vector<Outcome>() : work(part, own);
    fill_up(done, own.size());
    for (std::size_t i = 0; i < done.size(); ++i) {
      results[places[i]] = std::move(done[i]);
    }
  }
  return results;
}

std::vector<SettleResult> JoinedSource::settle(std::span<const Completion> completions, Deadline deadline) {
  return by_part(
      parts_.size(), completions, std::vector<SettleResult>(completions.size(), {SettleStatus::lost, {}}),
      [](const Completion& completion) { return completion.receipt.part; },
      [&](std::size_t part, const std::vector<Completion>& own) { return parts_[part].source->settle(own, deadline); });
}

std::vector<ExtendResult> JoinedSource::extend(std::span<const Receipt> receipts, Duration /*visibility*/,
                                               Deadline deadline) {
  return by_part(
      parts_.size(), receipts, std::vector<ExtendResult>(receipts.size(), {SettleStatus::lost, {}, {}, {}}),
      [](const Receipt& receipt) { return receipt.part; },
      [&](std::size_t part, const std::vector<Receipt>& own) {
        auto extended = parts_[part].source->extend(own, parts_[part].visibility, deadline);
        for (ExtendResult& one : extended) {
          one.receipt.part = static_cast<std::uint16_t>(part);
        }
        return extended;
      });
}

}  // namespace sluice::queue
