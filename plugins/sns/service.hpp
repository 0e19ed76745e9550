#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sluice/handler.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/credentials/credentials.hpp"
#include "dynamo/server_time.hpp"
#include "dynamo/settings.hpp"
#include "dynamo/signing/signer.hpp"
#include "dynamo/transport/http_transport.hpp"
#include "protocol.hpp"

namespace sns {

/// Where SNS is for each region, after AWS's usual places were read. Its own region is that of topics that are known by
/// name, its endpoint one for all regions. A value.
struct Endpoints : sluice::dynamo::EndpointSettings {
  std::string url(const std::string& of_region) const;
};

/// By the job's options and AWS's usual places; makes no request. Throws std::invalid_argument with a sentence for the
/// user.
Endpoints endpoints_of(const sluice::Options& options, const sluice::dynamo::AwsEnvironment& environment);
/// Who asks, in the same way. The references outlive it.
std::unique_ptr<sluice::dynamo::CredentialsProvider> credentials_of(const sluice::Options& options,
                                                                    const sluice::dynamo::AwsEnvironment& environment,
                                                                    sluice::dynamo::HttpTransport& transport,
                                                                    const sluice::Clock& clock, sluice::Random& random);

/// Shows the host how SNS fares, by what comes of the requests to it. Thread-safe.
class Reach {
 public:
  Reach(sluice::Host host, const Endpoints& endpoints);

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

/// Makes signed requests to SNS. Thread-safe.
class Service {
 public:
  /// What came of a request; `mended`: the cause of its failure was put right, and it is worth making again.
  using Callback = std::function<void(const sluice::dynamo::HttpResult& result, bool mended)>;

  /// The references outlive it, and whatever request is under way.
  Service(Endpoints endpoints, sluice::dynamo::HttpTransport& transport,
          sluice::dynamo::CredentialsProvider& credentials, const sluice::Clock& clock, Reach& reach);

  /// Signs the form for the region and sends it. Blocks only while credentials are looked for; `done` is called exactly
  /// once, here or on the transport's thread, and does not block.
  void send(const std::string& region, std::string form, sluice::Deadline deadline, Callback done);
  /// The same, and waits; once more where the first try put a cause right, or found nobody.
  sluice::dynamo::HttpResult call(const std::string& region, const std::string& form, sluice::Deadline deadline);

  const Endpoints& endpoints() const { return endpoints_; }

 private:
  const sluice::dynamo::Signer& signer(const std::string& region);
  bool mended(const sluice::dynamo::HttpResult& result, const std::optional<Failure>& failure,
              const sluice::dynamo::Credentials& used, sluice::WallTime signed_at);

  const Endpoints endpoints_;
  sluice::dynamo::HttpTransport& transport_;
  sluice::dynamo::CredentialsProvider& credentials_;
  const sluice::Clock& clock_;
  Reach& reach_;
  sluice::dynamo::ClockSkew skew_;

  std::mutex mutex_;
  // Guarded by mutex_; what it holds stays.
  std::map<std::string, std::unique_ptr<sluice::dynamo::Signer>> signers_;
};

/// Which topics may be used, and for how long their list is good. Patterns fit an ARN or a name.
struct DirectorySettings {
  std::vector<std::string> allowed;  ///< empty: all
  std::vector<std::string> denied;
  std::vector<std::string> unreadable;  ///< used though their attributes cannot be read
  sluice::Duration refetch = std::chrono::hours(24);
};

/// Finds topics that are known by name. SNS is asked when the first name comes, and again when the list is old or has
/// no such name; meanwhile the old list serves. Thread-safe.
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
    std::optional<bool> readable{};  ///< its attributes; nothing: nobody knows yet
  };
  using Lock = std::unique_lock<std::mutex>;

  bool is_due(const std::string& name) const;
  void fetch(Lock& lock, sluice::Deadline deadline);
  std::variant<std::vector<Topic>, Failure> list(sluice::Deadline deadline);
  bool look_at(Lock& lock, const Topic& topic, sluice::Deadline deadline);

  Service& service_;
  const DirectorySettings settings_;
  const sluice::Clock& clock_;
  const sluice::Host host_;

  mutable std::mutex mutex_;
  std::condition_variable fetched_;
  // Guarded by mutex_.
  std::multimap<std::string, Known> topics_;  // by name
  bool fetching_ = false;
  bool known_ = false;  // a list has come
  sluice::SteadyTime tried_at_{};
  Failure failure_;
};

}  // namespace sns
