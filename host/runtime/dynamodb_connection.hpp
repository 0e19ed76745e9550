#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "dynamo/transport/curl_transport.hpp"
#include "host/observe/metrics.hpp"
#include "host/runtime/drain_certificate.hpp"

namespace sluice::runtime {

/// A DynamoDB client with all it stands on: transport, credentials, AWS's settings. Counts what it spends.
///
/// Thread-safe as the client is. Destruction ends what is under way.
class DynamoDbConnection {
 public:
  struct Options {
    std::string region;                   ///< empty: from AWS's usual places
    std::string endpoint;                 ///< empty: the same, else AWS's own
    observe::Metrics* metrics = nullptr;  ///< told of every request; may be null
  };

  /// Makes no request yet. An Error (invalid) when no region is named anywhere or AWS's files cannot be read. The
  /// references, and the metrics, must outlive the connection.
  static Result<std::unique_ptr<DynamoDbConnection>> open(const Options& options, const Clock& clock, Random& random);
  ~DynamoDbConnection();
  DynamoDbConnection(const DynamoDbConnection&) = delete;
  DynamoDbConnection& operator=(const DynamoDbConnection&) = delete;

  dynamo::Client& client() { return *client_; }
  const std::string& region() const { return region_; }
  /// What all requests so far came to.
  DynamoDbCost cost() const;

 private:
  DynamoDbConnection(const Clock& clock, observe::Metrics* metrics) : metrics_(metrics), transport_(clock) {}

  void count(const dynamo::CallRecord& call);

  // Fixed after construction.
  observe::Metrics* const metrics_;
  std::string region_;
  // Synchronise themselves. Each uses those before it.
  dynamo::CurlTransport transport_;
  std::unique_ptr<dynamo::CredentialsProvider> credentials_;
  std::unique_ptr<dynamo::Client> client_;
  // Guarded by mutex_.
  mutable Mutex mutex_;
  DynamoDbCost cost_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::runtime
