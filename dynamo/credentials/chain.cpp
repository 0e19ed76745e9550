#include "dynamo/credentials/chain.hpp"

#include <functional>
#include <utility>
#include <vector>

#include "dynamo/credentials/caching_provider.hpp"
#include "dynamo/credentials/sources.hpp"

namespace sluice::dynamo {
namespace {

using Source = std::function<Lookup()>;

std::vector<Source> sources_of(const SourceContext& context, const std::string& profile, Deadline deadline) {
  return {
      [&context, &profile, deadline] { return assume_role_credentials(context, profile, deadline); },
      [&context, deadline] { return web_identity_credentials(context, deadline); },
      [&context, &profile, deadline] { return web_identity_credentials(context, profile, deadline); },
      [&context, &profile, deadline] { return sso_credentials(context, profile, deadline); },
      [&context, &profile] { return static_profile_credentials(context, profile); },
      [&context, &profile, deadline] { return process_credentials(context, profile, deadline); },
      [&context, deadline] { return container_credentials(context, deadline); },
      [&context, deadline] { return instance_credentials(context, deadline); },
  };
}

/// Gives the same ones for ever.
class StaticProvider final : public CredentialsProvider {
 public:
  explicit StaticProvider(Credentials credentials) : credentials_(std::move(credentials)) {}
  Result<Credentials> get(Deadline) override { return credentials_; }

 private:
  const Credentials credentials_;
};

}  // namespace

Result<Credentials> look_up_credentials(const AwsEnvironment& environment, HttpTransport& transport, const Clock& clock,
                                        Deadline deadline) {
  Lookup found = environment_credentials(environment);
  std::string tried;
  const auto decided = [&]() -> bool {
    if (const auto* absent = std::get_if<NotConfigured>(&found)) {
      tried += (tried.empty() ? "" : "; ") + absent->reason;
      return false;
    }
    return true;
  };
  const auto as_result = [&]() -> Result<Credentials> {
    if (auto* failure = std::get_if<Error>(&found)) {
      return std::move(*failure);
    }
    return std::move(std::get<Credentials>(found));
  };
  if (decided()) {
    return as_result();
  }
  const auto profiles = Profiles::load(environment);
  if (!profiles) {
    return profiles.error();
  }
  const ActiveProfile active = active_profile(environment);
  if (active.named && profiles->profile(active.name) == nullptr) {
    return Error(ErrorKind::no_credentials,
                 "AWS_PROFILE names " + active.name + ", which is in neither the AWS config nor the credentials file");
  }
  const SourceContext context{environment, *profiles, transport, clock};
  for (const auto& source : sources_of(context, active.name, deadline)) {
    found = source();
    if (decided()) {
      return as_result();
    }
  }
  return Error(ErrorKind::no_credentials,
               "no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, run "
               "aws configure, or give this machine a role (tried: " +
                   tried + ")");
}

std::unique_ptr<CredentialsProvider> make_default_chain(AwsEnvironment environment, HttpTransport& transport,
                                                        const Clock& clock, Random& random) {
  auto load = [environment = std::move(environment), &transport, &clock](Deadline deadline) {
    return look_up_credentials(environment, transport, clock, deadline);
  };
  return std::make_unique<CachingProvider>(std::move(load), clock, random);
}

std::unique_ptr<CredentialsProvider> make_static_credentials(Credentials credentials) {
  return std::make_unique<StaticProvider>(std::move(credentials));
}

}  // namespace sluice::dynamo
