#pragma once

#include <mutex>
#include <optional>
#include <sluice/handler.hpp>
#include <string>
#include <utility>

#include "answers.hpp"

namespace sns {

/// Shows the host how SNS fares, by what comes of the requests to it. Thread-safe.
class Reach {
 public:
  /// `where` is its address, for people.
  Reach(sluice::Host host, const std::string& where);

  /// What came of a request; nothing: it succeeded.
  void told(const std::optional<Failure>& failure);

 private:
  void show(bool works, std::string text);

  const sluice::Host host_;
  const std::string where_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::pair<bool, std::string> shown_;
};

}  // namespace sns
