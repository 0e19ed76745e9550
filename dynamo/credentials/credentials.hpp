#pragma once

#include <boost/core/noncopyable.hpp>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// What requests are signed with. A value. Never logged.
struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  ///< empty: long-lived keys
  std::string account_id;     ///< empty: not known
  std::optional<WallTime> expires_at;
  std::string source;  ///< where they came from, for people: "environment", "profile dev", ...
};

/// Gives credentials, from wherever. Thread-safe; blocks; a resource.
class CredentialsProvider : boost::noncopyable {
 public:
  virtual ~CredentialsProvider() = default;

  /// Credentials that are valid now. ErrorKind::no_credentials with what was tried, and the mend, when there are none.
  virtual Result<Credentials> get(Deadline deadline) = 0;

  /// Told that AWS refused these as expired or unknown: whoever keeps them loads new ones at the next get().
  virtual void refused(const Credentials& credentials) { static_cast<void>(credentials); }
};

}  // namespace sluice::dynamo
