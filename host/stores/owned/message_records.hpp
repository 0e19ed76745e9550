#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/owned/backlog.hpp"

namespace sluice::queue::owned {

/// A message that is out, and what its record says. A value.
struct Out {
  std::int64_t locator = 0;  ///< of its receipt
  Spot spot;
  std::int64_t epoch = 0;  ///< of its part, when it went out
  std::string id;
  core::MessageState state{};
  bool counted = false;  ///< the record counts this delivery already: its claim was written

  std::uint32_t source = 0;  ///< that it went to
  bool lost = false;
  bool writes_claim = false;  ///< before it is handed out
  bool unsure = false;        ///< a checkpoint may have been stored that has had no answer
  bool may_be_held = false;   ///< its group is, if the dead letter was written that has had no answer
};

/// Where the messages lie of a half whose parts this host owns. It judges nothing. Thread-safe.
class MessageRecords : boost::noncopyable {
 public:
  virtual ~MessageRecords() = default;

  /// Messages are to go in that order: makes sure of the time that they are read by, and says it for all to see where
  /// it goes by groups. What cannot be done now is done the next time.
  virtual void order_wanted(Order order, Deadline deadline) = 0;

  struct Query {
    std::uint32_t part = 0;
    ReadOrder order;
  };
  struct Page {
    std::vector<Found> found;  ///< by their keys
    std::string stopped_at;    ///< the last key that was looked at; empty: read to the end
  };
  /// Pages of several parts, side by side; one answer each, in their order.
  virtual std::vector<Result<Page>> read(std::span<const Query> queries, Deadline deadline) = 0;
  /// The groups of a part that wait for an operator.
  virtual Result<std::set<std::string>> read_holds(std::uint32_t part, Deadline deadline) = 0;
  /// The message as it was read, for whoever is to work on it.
  virtual Message open(const Entry& entry) = 0;

  struct ClaimWrite {
    Out out;
    core::StateChange change;
  };
  /// Whether each was written, in their order: it is where the record is as it was.
  virtual std::vector<bool> write_claims(std::span<const ClaimWrite> claims, Deadline deadline) = 0;
  /// One of `outs` for each completion.
  virtual std::vector<SettleResult> settle(std::span<const Completion> completions, std::span<const Out> outs,
                                           Deadline deadline) = 0;

  struct Count {
    std::size_t records = 0;
    bool more = false;
  };
  /// The dead letters of parts of the half, up to so many of each; nothing: they could not be counted.
  virtual std::vector<std::optional<Count>> count_dead(std::span<const std::uint32_t> parts, std::size_t most,
                                                       Deadline deadline) = 0;
};

}  // namespace sluice::queue::owned
