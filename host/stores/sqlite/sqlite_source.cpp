#include "host/stores/sqlite/sqlite_source.hpp"

#include <algorithm>
#include <utility>

#include "host/stores/sqlite/lease.hpp"

namespace sluice::queue::sqlite {

namespace {

// Of one transaction: large enough to share its flush, small enough that nobody waits long for it.
constexpr std::size_t kBatchItems = 1'000;

/// The parts of a batch that go into one transaction each, as [from, end).
template <typename Work>
void in_parts(std::size_t count, Work work) {
  for (std::size_t from = 0; from < count; from += kBatchItems) {
    work(from, std::min(count, from + kBatchItems));
  }
}

}  // namespace

const SourceTraits& SqliteSource::traits() const {
  static constexpr SourceTraits kTraits;
  return kTraits;
}

void SqliteSource::start(SourceEvents events) {
  if (events.on_ready) {
    auto listening = store_.doorbell().subscribe(address_, std::move(events.on_ready));
    const MutexLock lock(mutex_);
    listening_ = std::move(listening);
  }
}

void SqliteSource::stop() {
  Doorbell::Subscription ended;
  {
    const MutexLock lock(mutex_);
    ended = std::move(listening_);
  }
}

Result<Claimed> SqliteSource::claim(const ClaimRequest& request, Deadline deadline) {
  Claimed claimed;
  const auto work = [&](Writer& writer) {
    claimed = {};
    if (const auto queue = writer.records.queue(address_.queue)) {
      const Lease lease(store_.clock(), request.visibility);
      claimed = writer.records.claimer().claim(half_of(*queue, address_.type), request, lease);
    }
  };
  if (auto done = store_.write(work, false, deadline); !done) {
    return done.error();
  }
  return claimed;
}

std::vector<SettleResult> SqliteSource::settle(std::span<const Completion> completions, Deadline deadline) {
  std::vector<SettleResult> results(completions.size());
  in_parts(completions.size(), [&](std::size_t from, std::size_t end) {
    const auto batch = std::span(results).subspan(from, end - from);
    const auto work = [&](Writer& writer) {
      const WallTime now = store_.clock().wall_now();
      if (const auto queue = writer.records.queue(address_.queue)) {
        writer.records.deliveries().settle(half_of(*queue, address_.type), completions.subspan(from, end - from), batch,
                                           now);
      } else {
        std::fill(batch.begin(), batch.end(), SettleResult{SettleStatus::lost, {}});
      }
    };
    if (auto done = store_.write(work, true, deadline); !done) {
      std::fill(batch.begin(), batch.end(), SettleResult{SettleStatus::failed, done.error()});
    }
  });
  store_.doorbell().ring_settled(address_, completions, results);
  return results;
}

std::vector<ExtendResult> SqliteSource::extend(std::span<const Receipt> receipts, Duration visibility,
                                               Deadline deadline) {
  std::vector<ExtendResult> results(receipts.size());
  in_parts(receipts.size(), [&](std::size_t from, std::size_t end) {
    const auto work = [&](Writer& writer) {
      const Lease lease(store_.clock(), visibility);
      const auto queue = writer.records.queue(address_.queue);
      for (std::size_t i = from; i < end; ++i) {
        const auto renewed =
            queue ? writer.records.deliveries().extend(half_of(*queue, address_.type), receipts[i], lease)
                  : std::nullopt;
        results[i] = renewed ? ExtendResult{SettleStatus::applied, *renewed, lease.held_until, {}}
                             : ExtendResult{SettleStatus::lost, receipts[i], {}, {}};
      }
    };
    if (auto done = store_.write(work, false, deadline); !done) {
      for (std::size_t i = from; i < end; ++i) {
        results[i] = {SettleStatus::failed, receipts[i], {}, done.error()};
      }
    }
  });
  return results;
}

}  // namespace sluice::queue::sqlite
