#pragma once

#include <memory>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/credentials/aws_environment.hpp"
#include "dynamo/credentials/credentials.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

/// AWS's usual places, in this order: environment variables; the active profile's assumed role; web identity; IAM
/// Identity Center; the shared files' keys; the profile's credential_process; the container agent; the instance
/// metadata. The first that is configured decides, and what it gives is kept and refreshed (CachingProvider).
///
/// Nothing is read before the first get(). The references must outlive the provider.
std::unique_ptr<CredentialsProvider> make_default_chain(AwsEnvironment environment, HttpTransport& transport,
                                                        const Clock& clock, Random& random);

/// One look through the chain, without keeping anything. ErrorKind::no_credentials that lists what was tried, and the
/// mend, when no source is configured.
Result<Credentials> look_up_credentials(const AwsEnvironment& environment, HttpTransport& transport, const Clock& clock,
                                        Deadline deadline);

/// The same credentials for ever: those that a job names in its options.
std::unique_ptr<CredentialsProvider> make_static_credentials(Credentials credentials);

}  // namespace sluice::dynamo
