#pragma once

#include <boost/core/noncopyable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "dynamo/credentials/credentials.hpp"
#include "dynamo/error.hpp"
#include "dynamo/transport/curl_transport.hpp"

namespace sluice::dynamo {

/// A client with all it stands on: transport, credentials, the settings from AWS's usual places.
///
/// Thread-safe as the client is. Destruction ends what is under way.
class Connection : boost::noncopyable {
 public:
  struct Options {
    std::string region;                               ///< empty: from AWS's usual places
    std::string endpoint;                             ///< empty: the same, else AWS's own
    std::function<void(const CallRecord&)> observer;  ///< ClientOptions::observer
  };

  /// Makes no request yet. ErrorKind::validation when neither a region nor an endpoint is named anywhere
  /// (`no_region_text` is then the whole message), otherwise what `resolve_settings` says. The references must outlive
  /// the connection.
  static Result<std::unique_ptr<Connection>> open(Options options, const std::string& no_region_text,
                                                  const Clock& clock, Random& random);
  ~Connection();

  Client& client() { return *client_; }
  /// As it was named; empty where an endpoint makes up for it.
  const std::string& region() const { return region_; }

 private:
  explicit Connection(const Clock& clock) : transport_(clock) {}

  // Fixed after construction.
  std::string region_;
  // Synchronise themselves. Each uses those before it.
  CurlTransport transport_;
  std::unique_ptr<CredentialsProvider> credentials_;
  std::unique_ptr<Client> client_;
};

}  // namespace sluice::dynamo
