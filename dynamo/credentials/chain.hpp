#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "dynamo/credentials/credentials.hpp"
#include "dynamo/settings.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

/// When credentials are to be replaced. The windows shrink for those that live shorter than an hour, so that a role of
/// 15 minutes is not asked for anew with every call.
struct RefreshWindows {
  Duration advisory = std::chrono::minutes(15);    ///< before expiry: somebody should refresh, others go on
  Duration mandatory = std::chrono::minutes(10);   ///< before expiry: everybody waits for the refresh
  Duration first_pause = std::chrono::seconds(1);  ///< after a refresh that failed or brought nothing newer; doubles
  Duration longest_pause = std::chrono::minutes(1);

  static RefreshWindows for_lifetime(Duration lifetime);
};

/// Keeps credentials and replaces them before they expire.
///
/// Whoever comes first inside the advisory window refreshes, while others go on with what is valid; inside the
/// mandatory window all wait for that refresh. When it fails, the last ones are used until they expire, and attempts
/// are spaced. So are they where AWS refuses the new ones too. Thread-safe; a resource.
class CachingProvider final : public CredentialsProvider {
 public:
  using Source = std::function<Result<Credentials>(Deadline)>;

  /// `load` looks anew; it is called by one thread at a time and may block. The references must outlive the provider.
  CachingProvider(Source load, const Clock& clock, Random& random);

  Result<Credentials> get(Deadline deadline) override;
  void refused(const Credentials& credentials) override;

 private:
  enum class Need { none, advisory, mandatory };

  Need need(WallTime now) const SLUICE_REQUIRES(mutex_);
  bool usable(WallTime now) const SLUICE_REQUIRES(mutex_);
  void record(const Result<Credentials>& loaded, Deadline deadline) SLUICE_REQUIRES(mutex_);

  // Fixed after construction.
  const Source load_;

  // Synchronise themselves.
  const Clock& clock_;
  Random& random_;

  Mutex mutex_;
  Condition refreshed_;
  // Guarded by mutex_.
  std::optional<Credentials> current_ SLUICE_GUARDED_BY(mutex_);
  RefreshWindows windows_ SLUICE_GUARDED_BY(mutex_);
  bool refreshing_ SLUICE_GUARDED_BY(mutex_) = false;
  bool refused_ SLUICE_GUARDED_BY(mutex_) = false;
  bool after_refusal_ SLUICE_GUARDED_BY(mutex_) = false;  ///< the current ones took the place of refused ones
  int fruitless_ SLUICE_GUARDED_BY(mutex_) = 0;
  SteadyTime next_attempt_ SLUICE_GUARDED_BY(mutex_) = SteadyTime::min();
  Error last_error_ SLUICE_GUARDED_BY(mutex_);
};

/// AWS's usual places, in this order: environment variables; the active profile's assumed role; web identity; IAM
/// Identity Center; the shared files' keys; the profile's credential_process; the container agent; the instance
/// metadata. The first that is configured decides, and what it gives is kept and refreshed (CachingProvider).
///
/// Nothing is read before the first get(). `region`: where roles are assumed if AWS's usual places name no region;
/// empty: us-east-1. The references must outlive the provider.
std::unique_ptr<CredentialsProvider> make_default_chain(AwsEnvironment environment, std::string region,
                                                        HttpTransport& transport, const Clock& clock, Random& random);

/// One look through the chain, without keeping anything. ErrorKind::no_credentials that lists what was tried, and the
/// mend, when no source is configured.
Result<Credentials> look_up_credentials(const AwsEnvironment& environment, const std::string& region,
                                        HttpTransport& transport, const Clock& clock, Deadline deadline);

/// The same credentials for ever: those that a job names in its options.
std::unique_ptr<CredentialsProvider> make_static_credentials(Credentials credentials, const Clock& clock,
                                                             Random& random);

}  // namespace sluice::dynamo
