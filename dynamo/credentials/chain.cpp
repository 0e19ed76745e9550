#include "dynamo/credentials/chain.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "dynamo/credentials/sources.hpp"

namespace sluice::dynamo {
namespace {

constexpr int kLifetimeToAdvisory = 4;
constexpr int kLifetimeToMandatory = 6;
constexpr int kMostDoublings = 16;

}  // namespace

RefreshWindows RefreshWindows::for_lifetime(Duration lifetime) {
  RefreshWindows out;
  const Duration span = std::max(lifetime, Duration::zero());
  out.advisory = std::min(out.advisory, span / kLifetimeToAdvisory);
  out.mandatory = std::min(out.mandatory, span / kLifetimeToMandatory);
  return out;
}

CachingProvider::CachingProvider(Source load, const Clock& clock, Random& random)
    : load_(std::move(load)), clock_(clock), random_(random) {}

bool CachingProvider::usable(WallTime now) const {
  return current_ && !refused_ && (!current_->expires_at || now < *current_->expires_at);
}

CachingProvider::Need CachingProvider::need(WallTime now) const {
  if (!usable(now)) {
    return Need::mandatory;
  }
  if (!current_->expires_at) {
    return Need::none;
  }
  const Duration left = *current_->expires_at - now;
  if (left <= windows_.mandatory) {
    return Need::mandatory;
  }
  return left <= windows_.advisory ? Need::advisory : Need::none;
}

Result<Credentials> CachingProvider::get(Deadline deadline) {
  MutexLock lock(mutex_);
  for (;;) {
    const WallTime now = clock_.wall_now();
    const Need needed = need(now);
    const bool may_try = clock_.steady_now() >= next_attempt_;
    if (needed == Need::none || (needed == Need::advisory && (refreshing_ || !may_try))) {
      return *current_;
    }
    if (!refreshing_) {
      if (!may_try) {
        return usable(now) ? Result<Credentials>(*current_) : Result<Credentials>(last_error_);
      }
      refreshing_ = true;
      lock.unlock();
      const Result<Credentials> loaded = load_(deadline);
      lock.lock();
      refreshing_ = false;
      record(loaded, deadline);
      refreshed_.notify_all();
      return usable(clock_.wall_now()) ? Result<Credentials>(*current_) : Result<Credentials>(last_error_);
    }
    const bool in_time =
        refreshed_.wait_until(mutex_, deadline.time(), [this]() SLUICE_NO_TSA { return !refreshing_; });
    if (!in_time) {
      return usable(clock_.wall_now())
                 ? Result<Credentials>(*current_)
                 : Result<Credentials>(Error(ErrorKind::timeout, "no credentials could be loaded in time"));
    }
  }
}

void CachingProvider::record(const Result<Credentials>& loaded, Deadline deadline) {
  const WallTime now = clock_.wall_now();
  if (loaded) {
    const bool replaced = !current_ || current_->access_key_id != loaded->access_key_id;
    current_ = *loaded;
    after_refusal_ = std::exchange(refused_, false);
    // The same ones again are as old as they are: their windows stay, and the source is asked again before long.
    if (loaded->expires_at && replaced) {
      windows_ = RefreshWindows::for_lifetime(*loaded->expires_at - now);
    }
    last_error_ = no_credentials("the credentials from " + loaded->source +
                                 " have expired already; is this machine's clock right?");
  } else {
    last_error_ = loaded.error();
    if (deadline.passed(clock_.steady_now()) && !usable(now)) {
      return;  // whoever has more time may try at once; the others have what is still valid meanwhile
    }
  }
  if (loaded && !after_refusal_ && need(now) == Need::none) {
    fruitless_ = 0;
    next_attempt_ = SteadyTime::min();
    return;
  }
  const double full =
      std::ldexp(static_cast<double>(windows_.first_pause.count()), std::min(fruitless_, kMostDoublings));
  const double pause = std::min(full, static_cast<double>(windows_.longest_pause.count()));
  // From half to the whole of it, so that many hosts that lost the same service do not come back together.
  next_attempt_ = clock_.steady_now() + Duration(static_cast<Duration::rep>(pause * (0.5 + random_.unit() / 2)));
  ++fruitless_;
}

void CachingProvider::refused(const Credentials& credentials) {
  const MutexLock lock(mutex_);
  const bool too_soon = after_refusal_ && clock_.steady_now() < next_attempt_;
  // Others may have seen the same refusal and refreshed meanwhile.
  if (!too_soon && current_ && current_->access_key_id == credentials.access_key_id &&
      current_->session_token == credentials.session_token) {
    refused_ = true;
    // What was good for so long is no sign of a source that has no good ones.
    fruitless_ = clock_.steady_now() - windows_.longest_pause > next_attempt_ ? 0 : fruitless_;
  }
}

Result<Credentials> look_up_credentials(const AwsEnvironment& environment, const std::string& region,
                                        HttpTransport& transport, const Clock& clock, Deadline deadline) {
  std::string tried;
  std::optional<Result<Credentials>> found;
  const auto decided_by = [&](Lookup lookup) {
    if (const auto* absent = std::get_if<NotConfigured>(&lookup)) {
      tried += (tried.empty() ? "" : "; ") + absent->reason;
    } else if (const auto* failure = std::get_if<Error>(&lookup)) {
      found = *failure;
    } else {
      found = std::get<Credentials>(std::move(lookup));
    }
    return found.has_value();
  };
  if (decided_by(environment_credentials(environment))) {
    return *found;
  }
  SLUICE_TRY(profiles, Profiles::load(environment));
  const ActiveProfile active = active_profile(environment);
  if (active.named && profiles->profile(active.name) == nullptr) {
    return no_credentials("AWS_PROFILE names " + active.name +
                          ", which is in neither the AWS config nor the credentials file");
  }
  const SourceContext context{environment, *profiles, region, transport, clock};
  if (decided_by(assume_role_credentials(context, active.name, deadline)) ||
      decided_by(web_identity_credentials(context, deadline)) ||
      decided_by(web_identity_credentials(context, active.name, deadline)) ||
      decided_by(sso_credentials(context, active.name, deadline)) ||
      decided_by(static_profile_credentials(context, active.name)) ||
      decided_by(process_credentials(context, active.name, deadline)) ||
      decided_by(container_credentials(context, deadline)) || decided_by(instance_credentials(context, deadline))) {
    return *found;
  }
  return no_credentials(
      "no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, run "
      "aws configure, or give this machine a role (tried: " +
      tried + ")");
}

std::unique_ptr<CredentialsProvider> make_default_chain(AwsEnvironment environment, std::string region,
                                                        HttpTransport& transport, const Clock& clock, Random& random) {
  auto load = [environment = std::move(environment), region = std::move(region), &transport, &clock](
                  Deadline deadline) { return look_up_credentials(environment, region, transport, clock, deadline); };
  return std::make_unique<CachingProvider>(std::move(load), clock, random);
}

std::unique_ptr<CredentialsProvider> make_static_credentials(Credentials credentials, const Clock& clock,
                                                             Random& random) {
  return std::make_unique<CachingProvider>([keys = std::move(credentials)](Deadline) { return keys; }, clock, random);
}

}  // namespace sluice::dynamo
