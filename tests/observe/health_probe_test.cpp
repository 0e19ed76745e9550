#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/observe/http_endpoint.hpp"

namespace sluice::observe {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kPatience(60'000);

std::string port_of(const HttpEndpoint& endpoint) {
  const std::string address = endpoint.address();
  return address.substr(address.rfind(':') + 1);
}

TEST(HealthProbe, BringsStatusAndTextFromWhateverAddressMeansThisMachine) {
  HttpHandlers handlers;
  handlers.health = [] { return ProbeResult{false, "handler stuck: orders"}; };
  handlers.ready = [] { return ProbeResult{true, "ready"}; };
  handlers.metrics = [] { return std::string(); };
  const auto endpoint = *HttpEndpoint::open("127.0.0.1:0", std::move(handlers));
  endpoint->start();
  for (const std::string host : {"127.0.0.1", "0.0.0.0", "", "localhost"}) {
    const auto unwell = probe(host + ":" + port_of(*endpoint), "/healthz", kPatience);
    ASSERT_TRUE(unwell) << unwell.error().message();
    EXPECT_EQ(unwell->status, 503);
    EXPECT_EQ(unwell->text, "handler stuck: orders\n");
    const auto ready = probe(host + ":" + port_of(*endpoint), "/readyz", kPatience);
    ASSERT_TRUE(ready) << ready.error().message();
    EXPECT_EQ(ready->status, 200);
  }
  endpoint->stop();
}

TEST(HealthProbe, SaysWhereNobodyAnswers) {
  std::string gone;
  {
    const auto endpoint = *HttpEndpoint::open("127.0.0.1:0", {});
    gone = endpoint->address();
  }
  const auto answer = probe(gone, "/healthz", kPatience);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::unavailable);
  EXPECT_THAT(answer.error().message(), HasSubstr("no host answers on " + gone));
}

TEST(HealthProbe, DoesNotWaitForOneThatAcceptsAndIsSilent) {
  // Open, and never started: connections are queued and nobody reads them.
  const auto endpoint = *HttpEndpoint::open("127.0.0.1:0", {});
  const auto answer = probe(endpoint->address(), "/healthz", milliseconds(50));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message(), HasSubstr("does not answer as a host does"));
}

}  // namespace
}  // namespace sluice::observe
