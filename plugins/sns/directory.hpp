#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <sluice/handler.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "answers.hpp"
#include "base/clock.hpp"
#include "entry.hpp"
#include "service.hpp"

namespace sns {

/// Which topics may be used, and for how long their list is good. Patterns fit an ARN or a name.
struct DirectorySettings {
  std::vector<std::string> allowed;  ///< empty: all
  std::vector<std::string> denied;
  std::vector<std::string> unreadable;  ///< used though their attributes cannot be read
  sluice::Duration refetch = std::chrono::hours(24);
};

/// Finds topics that are known by name. SNS is asked when the first name comes, and again when the list is old or has
/// no such name; meanwhile the old list serves. Topics are kept by ARN. Thread-safe.
class Directory {
 public:
  /// A name is looked for anew this long after the last time at the earliest.
  static constexpr sluice::Duration kShortest = std::chrono::seconds(10);

  Directory(Service& service, DirectorySettings settings, const sluice::Clock& clock, sluice::Host host);

  /// Nobody of that name, several of it, or one that may not be used.
  struct Missing {
    std::string reason;
  };
  /// A Failure where SNS could not be asked.
  std::variant<Topic, Missing, Failure> find(const std::string& name, sluice::Deadline deadline);
  /// Whether the lists let this topic be published to.
  bool allows(const Topic& topic) const;

 private:
  struct Known {
    Topic topic;
    bool looked_at = false;  ///< its attributes were read, or it was tried
    bool readable = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  bool is_due(const std::string& name) const;
  void fetch(Lock& lock, sluice::Deadline deadline);
  std::variant<std::vector<Topic>, Failure> list(sluice::Deadline deadline);
  std::vector<std::string> named(const std::string& name) const;
  void look_at(Lock& lock, const std::string& arn, sluice::Deadline deadline);

  Service& service_;
  const DirectorySettings settings_;
  const sluice::Clock& clock_;
  const sluice::Host host_;

  mutable std::mutex mutex_;
  std::condition_variable fetched_;
  // Guarded by mutex_.
  std::map<std::string, Known> topics_;  // by ARN
  bool fetching_ = false;
  bool known_ = false;  // a list has come
  sluice::SteadyTime tried_at_{};
  Failure failure_;
};

}  // namespace sns
