#pragma once

#include <functional>
#include <optional>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "dynamo/credentials/credentials.hpp"

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
/// are spaced. Thread-safe; a resource.
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
  void record(const Result<Credentials>& loaded) SLUICE_REQUIRES(mutex_);

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
  int fruitless_ SLUICE_GUARDED_BY(mutex_) = 0;
  SteadyTime next_attempt_ SLUICE_GUARDED_BY(mutex_) = SteadyTime::min();
  Error last_error_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::dynamo
