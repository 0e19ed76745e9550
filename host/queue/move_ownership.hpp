#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/deadline.hpp"
#include "host/queue/operator.hpp"

namespace sluice::queue {

/// A queue whose hosts own its parts and hand out what they have read without asking the store again, as somebody has
/// it who carries its messages elsewhere: the hosts hand part after part over to him, once they have settled what is
/// out of it, and get them back at the end. A resource; it is for one thread.
class MoveOwnership {
 public:
  MoveOwnership() = default;
  MoveOwnership(const MoveOwnership&) = delete;
  MoveOwnership& operator=(const MoveOwnership&) = delete;
  virtual ~MoveOwnership() = default;

  /// How a half stands. A value.
  struct Progress {
    std::size_t held = 0;       ///< parts that nobody else hands anything out of
    std::size_t all = 0;        ///< 0: not known yet
    std::uint64_t changes = 0;  ///< grows whenever one comes or goes
    bool whole() const { return all > 0 && held == all; }
  };

  /// Does what is due before anything can be taken. What fails is tried again by the next call.
  virtual void tend(Deadline deadline) = 0;
  virtual Progress standing(Half half) const = 0;
  /// The queue's operator, which lists what lies in the parts that are held, and nothing else.
  virtual Operator& oper() = 0;
  /// Whether a message of the last list may be taken: nobody else hands it out before `relied_until`. Its part stays
  /// until `taken` is called.
  virtual bool may_take(const std::string& id) = 0;
  virtual SteadyTime relied_until() = 0;
  virtual void taken() = 0;
  /// Gives all of it back. False: some of it could not be, and the hosts wait until the lease on it has run out.
  virtual bool give_back() = 0;
};

}  // namespace sluice::queue
