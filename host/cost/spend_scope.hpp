#pragma once

#include <string>

#include "host/cost/spent.hpp"

namespace sluice::cost {

/// While it lives, what this thread spends is this queue's, whichever table it goes to, and adds up here. They nest;
/// the innermost counts. To be destroyed by the thread that made it.
class SpendScope {
 public:
  enum class Whose {
    caller,  ///< whoever made the scope asks it for what was spent
    nobody,  ///< no job's by itself: it goes into the queue's shared costs at once, as what is read ahead for all
  };

  /// `queue` outlives the scope.
  explicit SpendScope(const std::string& queue, Whose whose = Whose::caller);
  ~SpendScope();
  SpendScope(const SpendScope&) = delete;
  SpendScope& operator=(const SpendScope&) = delete;

  const std::string& queue() const { return queue_; }
  bool shared() const { return whose_ == Whose::nobody; }
  const Spent& spent() const { return spent_; }
  void add(const Spent& spent) { spent_ += spent; }

  /// The innermost one of this thread; null: there is none.
  static SpendScope* current();

 private:
  const std::string& queue_;
  const Whose whose_;
  SpendScope* const outer_;
  Spent spent_;
};

}  // namespace sluice::cost
