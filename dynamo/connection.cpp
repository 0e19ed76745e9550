#include "dynamo/connection.hpp"

#include <utility>

#include "base/error.hpp"
#include "dynamo/credentials/chain.hpp"
#include "dynamo/settings.hpp"

namespace sluice::dynamo {
namespace {

/// What requests to a named endpoint are signed for where nobody names a region: what answers there, an emulator or a
/// proxy, seldom looks at it.
constexpr const char* kSomeRegion = "us-east-1";

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(Options options, const std::string& no_region_text,
                                                     const Clock& clock, Random& random) {
  const auto environment = AwsEnvironment::of_process();
  SLUICE_TRY(settings, resolve_settings(environment));
  ClientOptions client_options{*settings};
  client_options.region = options.region.empty() ? settings->region : options.region;
  client_options.endpoint = options.endpoint.empty() ? settings->endpoint : options.endpoint;
  client_options.observer = std::move(options.observer);
  if (client_options.region.empty() && client_options.endpoint.empty()) {
    return Error(ErrorKind::validation, no_region_text);
  }
  std::unique_ptr<Connection> made(new Connection(clock));
  made->region_ = client_options.region;
  if (client_options.region.empty()) {
    client_options.region = kSomeRegion;
  }
  made->transport_.start();
  made->credentials_ = make_default_chain(environment, made->region_, made->transport_, clock, random);
  made->client_ =
      std::make_unique<Client>(std::move(client_options), made->transport_, *made->credentials_, clock, random);
  return made;
}

Connection::~Connection() {
  if (client_) {
    client_->stop();
  }
  // Its callbacks reach into client and credentials, so it ends before they do.
  transport_.stop();
}

}  // namespace sluice::dynamo
